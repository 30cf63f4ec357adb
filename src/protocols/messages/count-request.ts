import { withSchema, type JsonSchema } from '../with-schema.ts'
import { type Check, checkMembers, kindName, checkValue, refuse, requestSchema } from '../field-check.ts'
import type { Member, ScannedObject } from '../json/scanned-object.ts'

/** All that is looked at where tokens are only counted: whoever counts them looks at the rest. */
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

/** What `countedModel` lets through, as JSON Schema. */
export function countRequestSchema(): JsonSchema {
  return requestSchema(REQUIRED, CHECKS)
}

/**
 * The model that tokens are to be counted for; throws `invalid_request` where it, or what is counted, is not
 * there.
 */
export function countedModel(scan: ScannedObject): string {
  checkMembers(scan, REQUIRED, CHECKS)
  return scan.value('model') as string
}

/** Where it lies: a long conversation is not parsed to see that it is one. */
function checkMessages(scan: ScannedObject, { node }: Member): void {
  if (scan.kindOf(node) !== 'array') refuse('messages', 'an array', kindName(scan, node))
}
