import { withSchema, type JsonSchema } from '../with-schema.ts'
import { type Check, checkMembers, kindName, checkValue, refuse, requestSchema } from '../field-check.ts'
import type { Member, ScannedObject } from '../json/scanned-object.ts'

/** Checks of a request to count tokens. The gateway's counter or the upstream checks all other fields. */
const CHECKS: ReadonlyMap<string, Check> = new Map<string, Check>([
  [
    'model',
    checkValue(
      'a name',
      withSchema(
        { type: 'string', minLength: 1 },
        (value: unknown) => typeof value === 'string' && value !== '',
      ),
    ),
  ],
  ['messages', withSchema({ type: 'array' }, checkMessages)],
])

const REQUIRED = ['model', 'messages'] as const

/** Builds the JSON Schema of requests that `countedModel` accepts. */
export function countRequestSchema(): JsonSchema {
  return requestSchema(REQUIRED, CHECKS)
}

/**
 * Returns the model for which tokens are counted. Throws `invalid_request` if the model or the messages are
 * missing.
 */
export function countedModel(scan: ScannedObject): string {
  checkMembers(scan, REQUIRED, CHECKS)
  return scan.value('model') as string
}

/** Checks messages in place, without parsing them. */
function checkMessages(scan: ScannedObject, { node }: Member): void {
  if (scan.kindOf(node) !== 'array') refuse('messages', 'an array', kindName(scan, node))
}
