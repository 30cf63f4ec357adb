import { z } from 'zod'
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

const USER_EXPECTED = 'expected the id or the name of a user'

/** A user, by id or by name. */
export const userField = z
  .union([z.int(), textField(USER_EXPECTED)], { error: orTooLong(USER_EXPECTED) })
  .refine((given) => (typeof given === 'number' ? given > 0 : given !== ''), { error: USER_EXPECTED })

/** The input of operations on one user. */
export const userInput = z.object({ user: userField }, { error: 'expected an object that names a user' })
