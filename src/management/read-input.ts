import { z } from 'zod'
import { characterCount } from '../domain/character-count.ts'
import { GatewayError } from '../errors.ts'
import { orTooLong, textField } from './text-fields.ts'

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
  const expected = `expected a text of 1 to ${maxLength} characters without spaces around it`
  return textField(expected).refine(
    (text) =>
      text !== '' &&
      text === text.trim() &&
      !/\p{Cc}/u.test(text) &&
      text.isWellFormed() &&
      characterCount(text) <= maxLength,
    { error: expected },
  )
}

/** The name of a group; whether it exists is checked by the operation. */
export function groupField() {
  return textField('expected the name of a group').max(200, { error: 'expected the name of a group' })
}

const USER_EXPECTED = 'expected the id or the name of a user'

/** A user, by id or by name. */
export const userField = z
  .union([z.int(), textField(USER_EXPECTED)], { error: orTooLong(USER_EXPECTED) })
  .refine((given) => (typeof given === 'number' ? given > 0 : given !== ''), { error: USER_EXPECTED })

/** The input of operations on one user. */
export const userInput = z.object({ user: userField }, { error: 'expected an object that names a user' })
