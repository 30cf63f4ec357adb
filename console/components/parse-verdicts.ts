import { GUARD_VERDICTS, type GuardVerdict } from '../../src/domain/guard.ts'

/** What a guard decided about a call. */
export interface CallGuardVerdict {
  readonly name: string
  readonly verdict: GuardVerdict
  readonly count: number
}

/**
 * The guards' verdicts in the log entry of a call: `secrets=redacted;count=2, words=allowed;count=0`.
 * Anything else in the text is ignored.
 */
export function parseVerdicts(text: string): readonly CallGuardVerdict[] {
  return text.split(', ').flatMap((one) => {
    const [, name = '', verdict, count] = /^([^=]+)=([a-z_]+);count=(\d+)$/.exec(one) ?? []
    const known = GUARD_VERDICTS.find((known) => known === verdict)
    return known === undefined ? [] : [{ name, verdict: known, count: Number(count) }]
  })
}
