import { charge, type Rate } from '../domain/price.ts'
import type { SettlementReason } from '../domain/settlement.ts'
import { NO_USAGE, promptTokens, type Usage } from '../domain/usage.ts'
import { type ReportedUsage, toldUsage } from '../protocols/reported-usage.ts'
import type { LocalCount } from './local-count.ts'

/** Counts the tokens of the prompt. */
type CountPrompt = () => Promise<number>

/** How an answer to which content belongs came to its end. */
export type Ending = 'complete' | 'cut' | 'client_gone'

/** What is known of an answer when it ends. */
export interface ChargeBasis {
  readonly ending: Ending
  /** The upstream ended it as its protocol says, whether or not anybody was still listening. */
  readonly whole: boolean
  /** Usage as the upstream reported it, if it did. */
  readonly reported: ReportedUsage | undefined
  /**
   * Any text was generated; asked for only where the reported output is zero, or the price is one of calls
   * alone.
   */
  hasText(): boolean
  /** The generated text; asked for only where it must be counted. */
  text(): string
}

/** What an answer is charged, and why. */
export interface PricedUsage {
  readonly usage: Usage
  readonly quota: number
  readonly reason: SettlementReason
}

/** Nothing was delivered: nothing is charged. */
export const NOTHING: PricedUsage = { usage: NO_USAGE, quota: 0, reason: 'failed' }

/**
 * The charge by the table in `docs/ledger.md: Outcomes`: reported usage for a whole answer; a count of prompt
 * and output where it is missing or cannot be true, or of the output alone where the prompt was reported
 * without it; for any other ending the reported input, else the counted prompt, and the larger of reported
 * and counted output. A price of calls alone needs no count where nothing was generated. Answers at once
 * where nothing has to be counted.
 */
export function price(
  rate: Rate,
  prompt: CountPrompt,
  answered: ChargeBasis,
  count: LocalCount,
): PricedUsage | Promise<PricedUsage> {
  const { ending, whole, reported } = answered
  const usage = whole && reported && isCredible(reported, answered) ? reported : usageWithoutCount(rate, answered)
  if (usage) return { usage, quota: charge(rate, usage), reason: ending === 'cut' ? 'complete' : ending }
  return priceByCount(rate, prompt, answered, count)
}

/**
 * Where only the call has a price and nothing was generated, nobody waits for a count that changes nothing.
 */
function usageWithoutCount(rate: Rate, answered: ChargeBasis): Usage | undefined {
  if (rate.perToken || rate.free || answered.hasText()) return undefined
  return answered.reported ? toldUsage(answered.reported) : NO_USAGE
}

async function priceByCount(
  rate: Rate,
  prompt: CountPrompt,
  answered: ChargeBasis,
  count: LocalCount,
): Promise<PricedUsage> {
  const { ending, whole, reported } = answered
  const output = await count.count(answered.text())
  const usage: Usage =
    reported && (!whole || reported.outputIsUnknown) && promptTokens(reported) > 0
      ? { ...toldUsage(reported), output: Math.max(reported.output, output) }
      : {
          ...NO_USAGE,
          input: await prompt(),
          output: whole ? output : Math.max(reported?.output ?? 0, output),
        }
  return { usage, quota: charge(rate, usage), reason: ending === 'complete' ? 'estimated' : ending }
}

// Text is not made of no tokens. A prompt may be reported as 0: some upstreams do so when all of it was
// cached.
function isCredible(usage: ReportedUsage, answered: ChargeBasis): boolean {
  return !usage.outputIsUnknown && (usage.output > 0 || !answered.hasText())
}
