{{- define "specdec-operator.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 52 | trimSuffix "-" -}}
{{- end -}}

{{/* The name of the objects and of the Lease: short enough for the suffixes of the others. */}}
{{- define "specdec-operator.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride -}}
{{- else if contains (include "specdec-operator.name" .) .Release.Name -}}
{{- .Release.Name | trunc 52 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name (include "specdec-operator.name" .) | trunc 52 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "specdec-operator.serviceAccountName" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "specdec-operator.fullname" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- required "serviceAccount.name: name the account that the operator runs as, since serviceAccount.create is false: the rights would go to the namespace's account `default`, and with it to every pod there" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{- define "specdec-operator.selectorLabels" -}}
app.kubernetes.io/name: {{ include "specdec-operator.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "specdec-operator.labels" -}}
{{ include "specdec-operator.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name (.Chart.Version | replace "+" "_") }}
{{- end -}}

{{- define "specdec-operator.image" -}}
{{- if .Values.image.digest -}}
{{- printf "%s@%s" .Values.image.repository .Values.image.digest -}}
{{- else -}}
{{- printf "%s:%s" .Values.image.repository (default .Chart.AppVersion .Values.image.tag) -}}
{{- end -}}
{{- end -}}

{{/* The operator's configuration file. Its instance is an argument, which follows the namespace. */}}
{{- /* Text that is empty if nodes are not listed. */ -}}
{{- define "specdec-operator.readsNodes" -}}
{{- if and .Values.rbac.nodes (not .Values.namespaces) }}true{{ end -}}
{{- end -}}

{{- define "specdec-operator.configuration" -}}
{{- $own := dict "namespaces" (default list .Values.namespaces) "readNodes" (eq "true" (include "specdec-operator.readsNodes" .)) -}}
{{- toYaml (merge $own (default dict .Values.config)) -}}
{{- end -}}

{{- define "specdec-operator.subjects" -}}
- kind: ServiceAccount
  name: {{ include "specdec-operator.serviceAccountName" . }}
  namespace: {{ .Release.Namespace }}
{{- end -}}
