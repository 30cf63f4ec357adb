import { z } from 'zod'
import { characterCount } from '../domain/character-count.ts'
import { GatewayError } from '../errors.ts'

/** The maximum length of a long text, in UTF-16 units: above any legitimate use, below any harm. */
const MAX_TEXT_LENGTH = 65_536

/** Validates input; throws `invalid_request` with a message that names every invalid field. */
export function readInput<S extends z.ZodType>(schema: S, given: unknown): z.output<S> {
  const read = schema.safeParse(given)
  if (read.success) return read.data
  const messages = read.error.issues.map(({ path, message }) =>
    path.length === 0 ? message : `${path.join('.')}: ${message}`,
  )
  throw new GatewayError('invalid_request', messages.join('; '))
}

/** A trimmed text of 1 to `maxLength` grapheme clusters, without control characters. */
export function nameField(maxLength: number) {
  return expected(`a text of 1 to ${maxLength} characters without spaces around it`).refine(
    (text) =>
      text !== '' &&
      text === text.trim() &&
      !/\p{Cc}/u.test(text) &&
      text.isWellFormed() &&
      text.length <= maxLength * 20 &&
      characterCount(text) <= maxLength,
    { error: `expected a text of 1 to ${maxLength} characters without spaces around it` },
  )
}

/** A long text, which may be empty. */
export function listField() {
  const expectation = `a text of at most ${MAX_TEXT_LENGTH} characters`
  return expected(expectation).refine(
    (text) => text.length <= MAX_TEXT_LENGTH && !text.includes('\0') && text.isWellFormed(),
    { error: `expected ${expectation}` },
  )
}

/** The name of a group; whether it exists is checked by the operation. */
export function groupField() {
  return expected('the name of a group').max(200, { error: 'expected the name of a group' })
}

const USER_EXPECTED = 'expected the id or the name of a user'

/** A user, by id or by name. */
export const userField = z
  .union([z.int(), z.string()], { error: USER_EXPECTED })
  .refine((given) => (typeof given === 'number' ? given > 0 : given !== '' && given.length <= 2000), {
    error: USER_EXPECTED,
  })

/** The input of operations on one user. */
export const userInput = z.object({ user: userField }, { error: 'expected an object that names a user' })

function expected(what: string) {
  return z.string({ error: `expected ${what}` })
}
