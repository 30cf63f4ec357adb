import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto'
import { type Fields, asFields, asList, asString } from './fields.ts'
import { seededRandom } from './random.ts'
import { Refusal } from './refusal.ts'

const KEY = randomBytes(32)
const SEED_BYTES = 48
const MAC_BYTES = 32

/** Documented placeholders to use instead of a signature for calls that a model of another provider made. */
const STAND_INS = new Set(['skip_thought_signature_validator', 'context_engineering_is_the_way_to_go'])

/** Creates a signature derived from `seed`. For a call, `name` is the name of its function. */
export function createSignature(seed: string, name = ''): string {
  const random = seededRandom(seed)
  const body = Buffer.from(Array.from({ length: SEED_BYTES }, () => Math.floor(random() * 256)))
  return Buffer.concat([body, macOf(body, name)]).toString('base64')
}

/**
 * Throws `Refusal` unless each signature in a conversation was issued for the part that has it, and the first
 * call of each step since the user's last message has one.
 */
export function requireSignatures(contents: readonly Fields[]): void {
  const begins = contents.findLastIndex((content) => isUsers(content))
  for (const [at, content] of contents.entries()) {
    let isFirstCall = true
    for (const part of partsOfContent(content)) {
      const { thoughtSignature, functionCall } = part
      const name = asString(asFields(functionCall).name)
      if (thoughtSignature !== undefined) verify(asString(thoughtSignature), name)
      else if (functionCall !== undefined && isFirstCall && at > begins)
        throw new Refusal(
          'malformed',
          `Function call is missing a thought_signature in functionCall parts. Function call \`${name.slice(0, 64)}\`.`,
        )
      if (functionCall !== undefined) isFirstCall = false
    }
  }
}

/** Returns the parts of a content. A single part need not be in a list. */
export function partsOfContent({ parts }: Fields): Fields[] {
  return (Array.isArray(parts) ? asList(parts) : [parts]).map(asFields)
}

function isUsers(content: Fields): boolean {
  return (
    content.role !== 'model' &&
    partsOfContent(content).some(({ functionResponse }) => functionResponse === undefined)
  )
}

function verify(given: string, name: string): void {
  if (STAND_INS.has(given)) return
  const bytes = Buffer.from(given, 'base64')
  const [body, mac] = [bytes.subarray(0, SEED_BYTES), bytes.subarray(SEED_BYTES)]
  const isOwn = mac.length === MAC_BYTES && timingSafeEqual(mac, macOf(body, name))
  if (!isOwn) throw new Refusal('malformed', 'Corrupted thought signature.')
}

function macOf(body: Buffer, name: string): Buffer {
  return createHmac('sha256', KEY).update(body).update(name).digest()
}
