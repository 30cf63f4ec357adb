import type { z } from 'zod'
import { ALREADY_REPORTED } from './fields.ts'
import type { Path } from './diagnostics.ts'

/** An error found by a field, with its path. */
export interface Issue {
  readonly path: Path
  readonly message: string
}

/** The issues of a zod error: one for each unknown key, and none of those reported elsewhere. */
export function issuesOf(error: z.ZodError): Issue[] {
  return error.issues
    .flatMap((issue): Issue[] => {
      const path = issue.path.map((step) => (typeof step === 'number' ? step : String(step)))
      if (issue.code !== 'unrecognized_keys') return [{ path, message: issue.message }]
      const messages = issue.message.split('\n')
      return issue.keys.map((key, index) => ({
        path: [...path, key],
        message: messages[index] ?? issue.message,
      }))
    })
    .filter(({ message }) => message !== ALREADY_REPORTED)
}
