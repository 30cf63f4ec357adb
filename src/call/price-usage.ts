import type { AnswerMetadata } from '@sluice/wire/answer-metadata'
import type { CacheDiagnosis } from '@sluice/wire/cache-diagnosis'
import { chargeOfCall } from '../domain/charge.ts'
import { isGreaterDecimal, ZERO } from '../domain/decimal.ts'
import { imagePrice, type Price, type ChargeRate } from '../domain/price.ts'
import type { SettlementReason } from '../domain/call-outcome.ts'
import {
  type AdvisorTokens,
  mergeToolUses,
  usesOfOtherKinds,
  countUsesOfKind,
  type ToolUse,
} from '@sluice/wire/tool-use'
import type { PricedTool } from '../domain/tool-use.ts'
import type { StatedService } from '@sluice/wire/service-tier'
import { NO_USAGE, promptTokens, type Usage } from '@sluice/wire/usage'
import type { ReceivedMedia, ReceivedImage } from '@sluice/wire/received-media'
import { numbersOfReport, type ReportedUsage } from '@sluice/wire/reported-usage'
import type { ResponseEnding, Tap } from './dialects/answer-reader.ts'
import type { TokenCounter } from './token-counter.ts'
import type { MeasuredRequest } from './request-stages.ts'

/** Counts the tokens of the prompt. */
type CountPrompt = () => Promise<number>

/** Computes the charge for a usage, plus media that have a price of their own. */
type PriceCounted = (usage: Usage, reason: SettlementReason, media?: readonly PricedTool[]) => PricedUsage

/** Everything that determines a charge, apart from the response. */
export interface PricingInputs {
  readonly rate: ChargeRate
  readonly media: () => MediaPrices
  readonly countPrompt: CountPrompt
  readonly count: TokenCounter
  readonly unitsOf: MeasuredRequest['searchUnits']
  /** Selects those tool uses shown in a response that are charged. */
  readonly shown: (uses: readonly ToolUse[]) => readonly ToolUse[]
  readonly priceTools: (searches: number, uses: readonly ToolUse[]) => readonly PricedTool[]
  readonly priceAdvisors: (advisors: readonly AdvisorTokens[]) => readonly PricedTool[]
}

/** Facts of a response on which its charge depends. */
export interface ChargeBasis {
  readonly ending: ResponseEnding
  /** Whether the upstream ended the response as its protocol demands, even if the client had left. */
  readonly isComplete: boolean
  /** Usage reported by the upstream, if any. */
  readonly reported: ReportedUsage | undefined
  /**
   * What the response states about how it was served, such as the service tier; may be known without a usage.
   */
  readonly served: StatedService | undefined
  /** What the response states about the prompt cache. */
  readonly diagnosis?: CacheDiagnosis | undefined
  /** Whether the response ended for a reason that is not known. */
  readonly hasUnknownEnd?: boolean | undefined
  /** The id, model and finish reasons of the response; undefined if it states none. */
  names?(): AnswerMetadata | undefined
  /** Audio, images and hidden reasoning of a response. Called only if the usage is not reported. */
  arrived(): ReceivedMedia | undefined
  /** Uses of the provider's tools that the response showed. */
  readonly tools: readonly ToolUse[]
  /**
   * Whether any text was generated. Called only if the reported output is zero, or if only calls have a
   * price.
   */
  hasText(): boolean
  /** Returns the generated text. Called only if its tokens must be counted, or by a feature that reads it. */
  text(): string
}

/** What a stream has stated so far about how it is served, such as the service tier. */
export function statedServiceSoFar({
  usage,
  served,
}: Pick<Tap, 'usage' | 'served'>): StatedService | undefined {
  return served?.tier === undefined && served?.region === undefined ? usage?.served : served
}

/**
 * Facts of a stream for its charge, at its end or up to the point where it broke off. Of a stream that is free nothing is
 * counted: it repeats a response that was charged when it was generated.
 */
export function chargeBasisOfStream(
  tap: Pick<Tap, 'usage' | 'served' | 'diagnosis' | 'names' | 'tools' | 'arrived' | 'emittedBytes' | 'text'>,
  ending: ResponseEnding,
  isComplete: boolean,
  isFree: boolean,
): ChargeBasis {
  const { usage, emittedBytes } = tap
  const { uses: tools } = tap.tools
  return {
    ending,
    isComplete,
    reported: isFree ? NO_USAGE : usage,
    served: statedServiceSoFar(tap),
    diagnosis: tap.diagnosis,
    tools,
    hasUnknownEnd: tap.names?.hasUnknownEnd,
    names: () => tap.names,
    arrived: () => tap.arrived,
    hasText: () => !isFree && emittedBytes > 0,
    text: () => (isFree ? '' : tap.text),
  }
}

/** Facts of an answer that failed and was not delivered, for the charge of what it reports. */
export function chargeBasisOfFailure(reported: ReportedUsage): ChargeBasis {
  return {
    ending: 'failed',
    isComplete: true,
    reported: { ...numbersOfReport(reported), ...(reported.tools && { tools: reported.tools }) },
    served: reported.served,
    tools: NO_USES,
    arrived: () => undefined,
    hasText: () => false,
    text: () => '',
  }
}

const NO_USES: readonly ToolUse[] = []

/** A charge and the reason for it. */
export interface PricedUsage {
  readonly usage: Usage
  /** Uses of the provider's tools that are charged. */
  readonly tools: readonly PricedTool[]
  /** The charge in quota units. */
  readonly quota: number
  readonly reason: SettlementReason
}

const NO_TOOLS: readonly PricedTool[] = []

/** The charge of a call that delivered nothing. */
export const NOTHING_DELIVERED_CHARGE: PricedUsage = {
  usage: NO_USAGE,
  tools: [],
  quota: 0,
  reason: 'failed',
}

/**
 * Computes the charge by the table in `docs/ledger.md: Outcomes`. A complete response is charged by its
 * reported usage. If that is missing or implausible, prompt and output are counted; if only the output is
 * missing, only the output. For any other ending, the charge covers the prompt (counted if not reported), and
 * the larger of the reported and the counted output. If only calls have a price and nothing was generated,
 * nothing is counted. Search units, which `unitsOf` derives from the tokens of the prompt, are charged if no
 * priced tokens were reported. Tools are charged as reported, or else as shown. Returns a promise only if
 * something must be counted.
 */
export function priceUsage(
  { rate, media, shown, priceTools, priceAdvisors, countPrompt, count, unitsOf }: PricingInputs,
  basis: ChargeBasis,
): PricedUsage | Promise<PricedUsage> {
  const { ending, isComplete, reported } = basis
  const hasPricedTokens = rate.perToken && reported !== undefined && !reported.promptIsUnknown
  if (unitsOf && rate.price.search_unit.digits > 0n && !hasPricedTokens)
    return priceByUnits(rate, countPrompt, basis, unitsOf)
  const isUsable = isComplete && reported && isCredible(reported, basis)
  const usage = isUsable ? reported : usageWithoutCount(rate, basis)
  const priced: PriceCounted = (counted, reason, media) => {
    const { searches, uses } = usedTools(basis, shown(basis.tools))
    const used = searches === 0 && uses.length === 0 ? NO_TOOLS : priceTools(searches, uses)
    const advised = reported?.advisors ? priceAdvisors(reported.advisors) : NO_TOOLS
    const tools = media || advised.length > 0 ? [...used, ...advised, ...(media ?? NO_TOOLS)] : used
    const usage = counted.webSearches === searches ? counted : { ...counted, webSearches: searches }
    return { usage, tools, quota: chargeOfCall(rate, usage, {}, tools), reason }
  }
  if (usage) return priced(usage, ending === 'cut' ? 'complete' : ending)
  return priceByCount(media(), priced, countPrompt, basis, count)
}

/**
 * Returns the usage if only calls have a price and nothing was generated, because counting would not change
 * the charge; otherwise undefined.
 */
function usageWithoutCount(rate: ChargeRate, basis: ChargeBasis): Usage | undefined {
  if (rate.perToken || rate.free || basis.hasText() || basis.arrived()?.isEmpty === false) return undefined
  return basis.reported ? numbersOfReport(basis.reported) : NO_USAGE
}

function priceByUnits(
  rate: ChargeRate,
  countPrompt: CountPrompt,
  { ending, reported }: ChargeBasis,
  unitsOf: (tokens: number) => number,
): PricedUsage | Promise<PricedUsage> {
  const told = reported ? numbersOfReport(reported) : NO_USAGE
  const priced = (searchUnits: number, reason: SettlementReason): PricedUsage => {
    const usage = { ...told, searchUnits }
    return { usage, tools: [], quota: chargeOfCall(rate, usage), reason }
  }
  if (told.searchUnits > 0) return priced(told.searchUnits, ending === 'cut' ? 'complete' : ending)
  return countPrompt().then((tokens) => priced(unitsOf(tokens), ending === 'complete' ? 'estimated' : ending))
}

async function priceByCount(
  prices: MediaPrices,
  priced: PriceCounted,
  countPrompt: CountPrompt,
  basis: ChargeBasis,
  count: TokenCounter,
): Promise<PricedUsage> {
  const { ending, isComplete, reported } = basis
  const arrived = basis.arrived()
  const text = await count.count(basis.text())
  const isPromptReported = reported && (!isComplete || reported.outputIsUnknown) && promptTokens(reported) > 0
  const prompt = isPromptReported ? numbersOfReport(reported) : { ...NO_USAGE, input: await countPrompt() }
  const reportedOutput = isPromptReported || !isComplete ? (reported?.output ?? 0) : 0
  const output = text + (arrived?.hiddenTokens ?? 0)
  const counted = withMedia(prices, { ...prompt, output }, arrived)
  const isReportedMore = reportedOutput >= counted.allTokens
  const { usage, media } = isReportedMore
    ? { usage: { ...prompt, output: reportedOutput }, media: NO_TOOLS }
    : counted
  return priced(usage, ending === 'complete' ? 'estimated' : ending, media)
}

/**
 * Returns the tool uses that a complete response reported; for any other response, the larger of the reported
 * and the shown numbers.
 */
function usedTools(
  { isComplete, reported }: ChargeBasis,
  seen: readonly ToolUse[],
): { readonly searches: number; readonly uses: readonly ToolUse[] } {
  const searches = reported?.webSearches ?? 0
  if (isComplete && reported?.tools) return { searches, uses: reported.tools }
  return {
    searches: Math.max(searches, countUsesOfKind(seen, 'web_search')),
    uses: mergeToolUses(reported?.tools ?? [], usesOfOtherKinds(seen, 'web_search')),
  }
}

/**
 * Whether a complete response is charged by its reported usage. Generated text cannot have zero tokens. A prompt may be
 * reported as 0: some upstreams do so if all of it was cached.
 */
export function isCredible(usage: ReportedUsage, basis: Pick<ChargeBasis, 'hasText'>): boolean {
  return !usage.outputIsUnknown && !usage.promptIsUnknown && (usage.output > 0 || !basis.hasText())
}

/** Tokens that are charged per second of audio if seconds have no price. */
const TOKENS_PER_SECOND = 20

/** Prices of media: per second of audio and per image. */
type MediaPrices = Pick<Price, 'second' | 'image'>

/** Usage of a response, and the media in it that are charged separately. */
interface UsageWithMedia {
  readonly usage: Usage
  /** Media that have a price of their own; the usage contains no tokens for them. */
  readonly media: readonly PricedTool[]
  /** Number of output tokens if all media were charged as tokens. */
  readonly allTokens: number
}

/**
 * Adds the media that arrived to a counted usage: audio by duration and images by size if they have a price,
 * otherwise as tokens.
 */
function withMedia(
  { second, image }: MediaPrices,
  usage: Usage,
  arrived: ReceivedMedia | undefined,
): UsageWithMedia {
  if (!arrived || (arrived.seconds === 0 && arrived.pictures.length === 0))
    return { usage, media: NO_TOOLS, allTokens: usage.output }
  const { pictures } = arrived
  const seconds = Math.ceil(arrived.seconds)
  const soundTokens = Math.ceil(arrived.seconds * TOKENS_PER_SECOND)
  const pictureTokens = pictures.reduce((sum, { tokens }) => sum + tokens, 0)
  const hasSecondPrice = isGreaterDecimal(second, ZERO)
  const hasImagePrice = Object.values(image).some((price) => isGreaterDecimal(price, ZERO))
  const audioOutput = hasSecondPrice ? 0 : soundTokens
  const imageOutput = hasImagePrice ? 0 : pictureTokens
  return {
    usage: {
      ...usage,
      output: usage.output + audioOutput + imageOutput,
      audioOutput,
      imageOutput,
      seconds,
      images: pictures.length,
    },
    media: [
      ...(hasSecondPrice && seconds > 0 ? [{ kind: 'second', count: seconds, price: second } as const] : []),
      ...(hasImagePrice ? pricedPictures(pictures, image) : []),
    ],
    allTokens: usage.output + soundTokens + pictureTokens,
  }
}

/** Prices images by their sizes. */
function pricedPictures(pictures: readonly ReceivedImage[], prices: Price['image']): PricedTool[] {
  const bySize = Map.groupBy(pictures, ({ size }) => size)
  return [...bySize].map(([size, { length: count }]) => ({
    kind: 'image',
    count,
    price: imagePrice(prices, { size }),
  }))
}
