import { z } from 'zod'

/**
 * Schemas of the ids of `kind`, whole numbers from 1 to 2^53 − 1: in JSON, in a path, and as a list in a
 * body.
 */
export function idFields(kind: 'token' | 'channel', notAList: string) {
  const error = `expected the id of a ${kind}`
  const id = z.int({ error }).positive({ error })
  const written = z
    .string()
    .regex(/^[1-9]\d{0,15}$/, { error })
    .transform(Number)
    .pipe(id)
  // Validated as a whole, so that a thousand invalid ids cause a single issue.
  const ids = z
    .array(z.unknown().meta({ type: 'integer' }), { error: notAList })
    .refine((given) => given.length > 0 && given.every((one) => id.safeParse(one).success), {
      error: `expected ids of ${kind}s, at least one`,
    })
    .transform((given) => given as number[])
  return {
    id,
    written,
    path: z.object({ id: written }),
    body: z.object({ ids }, { error: 'expected an object with ids' }),
  }
}
