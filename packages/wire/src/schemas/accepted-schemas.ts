import type { DroppedFields, UpstreamModel } from '../codec.ts'
import type { OutputSchema, Tool } from '../conversation.ts'
import { asRecord, parseRecord } from '../json/record.ts'
import { type EnforcedSchemas, toClosedFormat, toClosedSchema } from './closed-schema.ts'
import type { SchemaWork } from './schema-work.ts'
import { toToolSchema } from './tool-schema.ts'

/** How `x-gateway-dropped` names schemas that were changed, or that are not enforced as the client asked. */
const DROPPED = 'schema'

/** Adapts a tool to a server that speaks chat or responses. */
export function toolForServer(
  tool: Tool,
  upstream: UpstreamModel,
  work: SchemaWork,
  dropped: DroppedFields,
): Tool {
  if (tool.schema === undefined || tool.form?.custom) return tool
  const { schemas } = upstream.server
  const flat = toToolSchema(tool.schema, work)
  const schema = schemas.convert?.(flat, work) ?? flat
  const isRefused = tool.strict === true && !schemas.enforces(schema, upstream.name)
  if (schema === tool.schema && !isRefused) return tool
  dropped.add(DROPPED)
  return { ...tool, schema, ...(isRefused && { strict: false }) }
}

/** Adapts an output format to a server that speaks chat or responses. */
export function formatForServer(
  format: OutputSchema,
  upstream: UpstreamModel,
  work: SchemaWork,
  dropped: DroppedFields,
): OutputSchema {
  const { schemas } = upstream.server
  const schema = schemas.convert?.(format.schema, work) ?? format.schema
  const isRefused = format.strict === true && !schemas.enforces(schema, upstream.name)
  if (schema === format.schema && !isRefused) return format
  dropped.add(DROPPED)
  return { ...format, schema, ...(isRefused && { strict: false }) }
}

/**
 * Adapts a tool to Anthropic or Bedrock. `withType` adds to a schema what its root needs. A tool that can no
 * longer be enforced beside the other schemas of the request is sent without `strict`.
 */
export function toolForClaude(
  tool: Tool,
  withType: (schema: string) => string,
  enforced: EnforcedSchemas,
  dropped: DroppedFields,
): Tool {
  const { schema: given = '{}', strict } = tool
  const plain = toToolSchema(given, enforced.work)
  const schema = withType(plain)
  if (strict !== true) {
    if (plain !== given) dropped.add(DROPPED)
    return { ...tool, schema }
  }
  const closed = enforced.closed((work) => toClosedSchema(schema, work))
  const isEnforced = closed !== undefined && enforced.takesTool(closed)
  if (plain !== given || closed !== schema || !isEnforced) dropped.add(DROPPED)
  return isEnforced ? { ...tool, schema: closed } : { ...tool, schema, strict: false }
}

/**
 * Adapts an output format to Anthropic or Bedrock. Returns undefined if the schema cannot be enforced: it is
 * too complex, or it leaves all names of properties to the model, and would allow only `{}` when closed.
 */
export function formatForClaude(
  format: OutputSchema,
  enforced: EnforcedSchemas,
  dropped: DroppedFields,
): OutputSchema | undefined {
  const closed = enforced.closed((work) => toClosedFormat(format, work))
  if (!closed) return undefined
  if (closed.schema !== format.schema && allowsOnlyEmpty(closed.schema) && !allowsOnlyEmpty(format.schema))
    return undefined
  if (!enforced.takesFormat(closed.schema)) return undefined
  if (closed.schema !== format.schema) dropped.add(DROPPED)
  return closed
}

function allowsOnlyEmpty(schema: string): boolean {
  const { type, properties, additionalProperties } = parseRecord(schema) ?? {}
  return (
    type === 'object' &&
    additionalProperties === false &&
    Object.keys(asRecord(properties) ?? {}).length === 0
  )
}
