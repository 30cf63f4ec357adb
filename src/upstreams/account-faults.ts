import type { UpstreamErrorText } from '@sluice/wire/upstream-error'
import type { Channel } from '../domain/records/channel.ts'
import { ACCOUNT_FAULTS, type AccountAnswer, type AccountAnswerKind } from './account-fault-table.ts'

/** A line of the table with the pattern of its words. */
interface Line extends AccountAnswer {
  readonly pattern: RegExp | undefined
}

const LINES: readonly Line[] = ACCOUNT_FAULTS.map((fault) => ({
  ...fault,
  pattern: fault.words === undefined ? undefined : patternOf(fault.words),
}))

/** A pattern for a sentence at the start of a message: nothing of the sentence may be missing. */
function patternOf(words: string): RegExp {
  const parts = words.split('*').map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, String.raw`\$&`))
  return new RegExp(`^${parts.join('[^\\n]{1,200}?')}(?=$|\\s)`)
}

/** The lines of the table that count for a channel; they depend on its settings alone. */
const linesOf = new WeakMap<Pick<Channel, 'provider' | 'base_url'>, readonly Line[]>()

function linesFor(channel: Pick<Channel, 'provider' | 'base_url'>): readonly Line[] {
  const known = linesOf.get(channel)
  if (known) return known
  const { provider, base_url } = channel
  const hostname = URL.parse(base_url)?.hostname ?? ''
  const isHere = ({ at }: Line): boolean =>
    at instanceof RegExp ? provider === 'generic' && at.test(hostname) : at === provider
  const isKnown = LINES.some(isHere)
  const found = LINES.filter(
    (line) => line.at === 'any' || isHere(line) || (!isKnown && line.isOnlyThere !== true),
  )
  linesOf.set(channel, found)
  return found
}

/**
 * What an upstream's error says about the account of the operator; undefined if it says nothing about it.
 * `isInRequest` returns whether a text of the client's request may contain these words.
 */
export function accountFaultOf(
  channel: Pick<Channel, 'provider' | 'base_url'>,
  { code = '', type = '', status, message = '' }: UpstreamErrorText & { readonly status: number },
  isInRequest: (text: string) => boolean,
): AccountAnswerKind | undefined {
  const said = linesFor(channel).filter((line) => {
    if (line.status && !line.status.includes(status)) return false
    return !line.codes || line.codes.includes(code) || line.codes.includes(type)
  })
  const byCode = said.find(({ pattern }) => pattern === undefined)
  if (byCode) return byCode.kind
  for (const { pattern, kind } of said) {
    const words = pattern?.exec(message)?.[0]
    if (words !== undefined && !isInRequest(words)) return kind
  }
  return undefined
}
