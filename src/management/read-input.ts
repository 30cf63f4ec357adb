import { z } from 'zod'
import { characterCount } from '../domain/character-count.ts'
import { GatewayError } from '../errors.ts'

/** Longest text of a list, in UTF-16 units: far above what anybody writes, and far below what hurts. */
const MAX_TEXT_LENGTH = 65_536

/**
 * Reads an operation's input; throws `invalid_request` with a sentence that names every field that is wrong.
 */
export function readInput<S extends z.ZodType>(schema: S, given: unknown): z.output<S> {
  const read = schema.safeParse(given)
  if (read.success) return read.data
  const told = read.error.issues.map(({ path, message }) =>
    path.length === 0 ? message : `${path.join('.')}: ${message}`,
  )
  throw new GatewayError('invalid_request', told.join('; '))
}

/** A text of 1 to `longest` characters as a person counts them, no control characters, no space around it. */
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

/** A longer text, which may be empty. */
export function listField() {
  const says = `a text of at most ${MAX_TEXT_LENGTH} characters`
  return expected(says).refine(
    (text) => text.length <= MAX_TEXT_LENGTH && !text.includes('\0') && text.isWellFormed(),
    { error: `expected ${says}` },
  )
}

/** The name of a group; which ones there are is looked up later. */
export function groupField() {
  return expected('the name of a group').max(200, { error: 'expected the name of a group' })
}

const USER_EXPECTED = 'expected the id or the name of a user'

/** A user, by id or by name. */
export const userField = z
  .union([z.int(), z.string()], { error: USER_EXPECTED })
  .refine((who) => (typeof who === 'number' ? who > 0 : who !== '' && who.length <= 2000), {
    error: USER_EXPECTED,
  })

/** The input of operations that are about one user. */
export const userInput = z.object({ user: userField }, { error: 'expected an object that names a user' })

function expected(what: string) {
  return z.string({ error: `expected ${what}` })
}
