import { expect, test } from 'vitest'
import { type ErrorKind, ERRORS } from '../../src/errors.ts'
import { texts as en } from './en.ts'
import { texts as zh } from './zh.ts'

/** The statuses of calls that leave a row when they are refused. `docs/api.md: Refused calls`. */
const OF_REFUSALS = new Set([400, 401, 403, 429, 503])
/** What only management refuses, or a call that has begun. */
const NOT_OF_CALLS = new Set([
  'unauthorized',
  'role_too_low',
  'operator_limit',
  'other_site',
  'sign_in_refused',
  'not_operator',
  'identity_provider_unavailable',
  'too_many_calls',
  'too_many_reads',
  'call_stopped',
])

test('every code with which a call is refused has words in the log and a meaning in usage, in both languages', () => {
  const codes = Object.entries<ErrorKind>(ERRORS)
    .filter(([name, { status }]) => OF_REFUSALS.has(status) && !NOT_OF_CALLS.has(name))
    .map(([name, { code = name }]) => code)
  expect(codes).toContain('token_disabled')
  for (const { logs, usage } of [en, zh])
    for (const words of [logs.refusals, usage.refusals])
      expect(codes.filter((code) => !Object.hasOwn(words, code))).toEqual([])
})
