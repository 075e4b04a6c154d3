-- Health of a SpeculativeModel or a ModelArtifact, as Argo CD asks for it: `obj` is the live object.
-- Uses nothing but Lua's base library, which is what Argo CD gives to scripts of argocd-cm.
local metadata = obj.metadata or {}
local spec = obj.spec or {}
local status = obj.status or {}

local conditions = {}
for _, condition in ipairs(status.conditions or {}) do
  conditions[condition.type] = condition
end

-- Ready is the sum of the others: it has the reason and the message of what decided.
local function health(word)
  local message = "waiting for the condition Ready"
  if conditions.Ready ~= nil then
    message = conditions.Ready.reason
    if conditions.Ready.message ~= nil and conditions.Ready.message ~= "" then
      message = message .. ": " .. conditions.Ready.message
    end
  end
  return { status = word, message = message }
end

local function holds(kind)
  return conditions[kind] ~= nil and conditions[kind].status == "True"
end

if metadata.deletionTimestamp ~= nil then
  return { status = "Progressing", message = "it is being deleted" }
end
if status.observedGeneration ~= metadata.generation then
  return { status = "Progressing", message = "the operator has not looked at this generation of the spec yet" }
end
if holds("Stalled") then
  return health("Degraded")
end
if holds("Reconciling") then
  return health("Progressing")
end
if holds("Ready") then
  return health("Healthy")
end
-- No pod is asked for: suspended by its owner, or scaled to zero.
if spec.suspend == true or spec.replicas == 0 then
  return health("Suspended")
end
return health("Progressing")
