import type { Usage } from '@sluice/wire/usage'
import { type Decimal, decimalText, multiply, ONE, ZERO } from './decimal.ts'
import type { Field } from './records/record.ts'

/** The database column of a count, with its name in responses and its description. */
export type CountColumn = { readonly name: string } & Pick<Field, 'as' | 'about' | 'shown'>

/** A kind of tokens that has a price of its own, such as cached input or audio output. */
interface KindOfTokens {
  /** The name of the kind's price in gateway.yaml and in the management API, in USD per million tokens. */
  readonly name: string
  /** The name of the line in a call's cost that charges these tokens; if absent, `name`. */
  readonly line?: string
  /** The field of a call's usage that counts these tokens. */
  readonly count: keyof Usage
  /**
   * The database column of the count. Absent if the column is declared elsewhere, or if only a call's
   * `particulars` in the usage log contain the count.
   */
  readonly column?: CountColumn
  /** Whether these tokens belong to the prompt, which determines the price tier, or to the output. */
  readonly side: 'prompt' | 'output'
  /** The kind whose count includes these tokens, and whose price applies if no other is stated. */
  readonly partOf?: string
  /** Set for tokens of audio or images, which only calls with that medium use. */
  readonly medium?: 'audio' | 'image'
  /** The default price: a multiple of the price of a kind listed earlier. */
  readonly byDefault?: { readonly of: string; readonly times: Decimal }
  /** Whether every price in gateway.yaml must state the price of this kind. */
  readonly isRequired?: true
  /**
   * The price ratio of One API that determines the price of this kind: relative to the price of a kind listed
   * earlier, multiplied by `times`.
   */
  readonly ratio?: { readonly name: string; readonly of: string; readonly times?: Decimal }
  /** The kind's key in the built-in price data. */
  readonly data?: string
  /**
   * Set for tokens that are read from or written to a prompt cache. `plain` is the kind that the same tokens
   * would be without a cache.
   */
  readonly cached?: { readonly side: 'read' | 'write'; readonly plain: string }
}

const TABLE = [
  {
    name: 'input',
    count: 'input',
    column: { name: 'input_tokens', shown: false },
    side: 'prompt',
    isRequired: true,
    data: 'input_mtok',
  },
  {
    name: 'output',
    count: 'output',
    column: { name: 'output_tokens', as: 'completion_tokens' },
    side: 'output',
    isRequired: true,
    byDefault: { of: 'input', times: ONE },
    ratio: { name: 'completion', of: 'input' },
    data: 'output_mtok',
  },
  {
    name: 'cache_read',
    line: 'cached',
    count: 'cacheRead',
    column: { name: 'cache_read_tokens', as: 'cached_tokens' },
    side: 'prompt',
    byDefault: { of: 'input', times: { digits: 1n, scale: 1 } },
    ratio: { name: 'cache', of: 'input' },
    data: 'cache_read_mtok',
    cached: { side: 'read', plain: 'input' },
  },
  {
    name: 'cache_write_5m',
    count: 'cacheWrite5m',
    column: { name: 'cache_write_5m_tokens' },
    side: 'prompt',
    byDefault: { of: 'input', times: { digits: 125n, scale: 2 } },
    ratio: { name: 'createCache', of: 'input' },
    data: 'cache_write_mtok',
    cached: { side: 'write', plain: 'input' },
  },
  {
    name: 'cache_write_1h',
    count: 'cacheWrite1h',
    column: { name: 'cache_write_1h_tokens' },
    side: 'prompt',
    byDefault: { of: 'input', times: { digits: 2n, scale: 0 } },
    // One API's ratio applies to a cache of five minutes; a cache of one hour costs 1.6 times as much.
    ratio: { name: 'createCache', of: 'input', times: { digits: 16n, scale: 1 } },
    data: 'cache_write_1h_mtok',
    cached: { side: 'write', plain: 'input' },
  },
  {
    name: 'cache_write_30m',
    count: 'cacheWrite30m',
    column: { name: 'cache_write_30m_tokens' },
    side: 'prompt',
    byDefault: { of: 'cache_write_5m', times: ONE },
    cached: { side: 'write', plain: 'input' },
  },
  {
    name: 'cache_write_12h',
    count: 'cacheWrite12h',
    column: { name: 'cache_write_12h_tokens' },
    side: 'prompt',
    byDefault: { of: 'input', times: { digits: 2n, scale: 0 } },
    cached: { side: 'write', plain: 'input' },
  },
  {
    name: 'audio_input',
    count: 'audioInput',
    column: { name: 'audio_input_tokens', about: 'The part of prompt_tokens that was audio' },
    side: 'prompt',
    partOf: 'input',
    medium: 'audio',
    ratio: { name: 'audio', of: 'input' },
    data: 'input_audio_mtok',
  },
  {
    name: 'audio_output',
    count: 'audioOutput',
    column: { name: 'audio_output_tokens', about: 'The part of completion_tokens that was audio' },
    side: 'output',
    partOf: 'output',
    medium: 'audio',
    ratio: { name: 'audioCompletion', of: 'audio_input' },
    data: 'output_audio_mtok',
  },
  {
    name: 'image_input',
    count: 'imageInput',
    column: { name: 'image_input_tokens', about: 'The part of prompt_tokens that was images' },
    side: 'prompt',
    partOf: 'input',
    medium: 'image',
    ratio: { name: 'image', of: 'input' },
    data: 'input_image_mtok',
  },
  {
    name: 'image_output',
    count: 'imageOutput',
    column: { name: 'image_output_tokens', about: 'The part of completion_tokens that was images' },
    side: 'output',
    partOf: 'output',
    medium: 'image',
    ratio: { name: 'imageCompletion', of: 'image_input' },
    data: 'output_image_mtok',
  },
  {
    name: 'audio_cache_read',
    line: 'audio_cached',
    count: 'audioCacheRead',
    side: 'prompt',
    partOf: 'cache_read',
    medium: 'audio',
    data: 'cache_audio_read_mtok',
    cached: { side: 'read', plain: 'audio_input' },
  },
  {
    name: 'image_cache_read',
    line: 'image_cached',
    count: 'imageCacheRead',
    side: 'prompt',
    partOf: 'cache_read',
    medium: 'image',
    data: 'cache_image_read_mtok',
    cached: { side: 'read', plain: 'image_input' },
  },
] as const satisfies readonly KindOfTokens[]

type Row = (typeof TABLE)[number]

/** Name of a kind of tokens and of its price. */
export type TokenKind = Row['name']

/** Name of the usage field that counts a kind of tokens. */
export type TokenCount = Row['count']

/** Kinds of tokens whose counts have a database column. */
export type StoredTokenKind = Extract<Row, { readonly column: unknown }>

/** Name of a line in a call's cost that charges tokens of one kind. */
export type TokenCostLine = LineOf<Row>

type LineOf<Kind extends KindOfTokens> = Kind extends { readonly line: infer Line } ? Line : Kind['name']

/** Names of the lines of audio and image tokens in a call's cost. */
export type MediaTokenLine = LineOf<Extract<Row, { readonly medium: unknown }>>

/** Name of a price ratio that determines the price of a kind of tokens. */
export type TokenRatio = Extract<Row, { readonly ratio: unknown }>['ratio']['name']

/** A row of `TOKEN_KINDS`. */
export interface TokenKindRow extends KindOfTokens {
  readonly name: TokenKind
  readonly line: TokenCostLine
  readonly count: TokenCount
  readonly partOf?: TokenKind
  readonly byDefault?: { readonly of: TokenKind; readonly times: Decimal }
  readonly ratio?: { readonly name: TokenRatio; readonly of: TokenKind; readonly times?: Decimal }
  readonly cached?: { readonly side: 'read' | 'write'; readonly plain: TokenKind }
}

/**
 * All kinds of tokens that have a price. Most code that deals with token prices is derived from these rows
 * (`docs/recipes/add-a-price-kind.md`).
 */
export const TOKEN_KINDS: readonly TokenKindRow[] = TABLE.map(
  (row: Omit<TokenKindRow, 'line'> & { readonly line?: TokenCostLine }) => ({
    ...row,
    line: row.line ?? (row.name as TokenCostLine),
  }),
)

/**
 * The part of a row that every charge reads. All these objects have the same properties in the same order, so
 * that V8 reads them faster.
 */
interface CountedKind extends Pick<TokenKindRow, 'name' | 'line' | 'count'> {
  /** The kinds that are part of this kind: its count includes their tokens. */
  readonly parts: readonly CountedKind[]
}

/**
 * The kinds that are not part of another kind: first those of the prompt, then those of the output, in the
 * order of a cost's lines.
 */
export const INDEPENDENT_KINDS: readonly CountedKind[] = (['prompt', 'output'] as const).flatMap((wanted) =>
  countedKinds(({ side, partOf }) => side === wanted && !partOf),
)

function countedKinds(isWanted: (kind: TokenKindRow) => boolean): CountedKind[] {
  return TOKEN_KINDS.filter(isWanted).map(({ name, line, count }) => {
    const parts = countedKinds(({ partOf }) => partOf === name)
    return { name, line, count, parts }
  })
}

/** USD per million tokens of each kind. */
export type TokenPrices = Readonly<Record<TokenKind, Decimal>>

/** Token prices, some of which may be missing. */
export type PartialTokenPrices = { readonly [Kind in TokenKind]?: Decimal | undefined }

export function valueForEachTokenKind<T>(value: (kind: TokenKindRow) => T): Record<TokenKind, T> {
  return Object.fromEntries(TOKEN_KINDS.map((kind) => [kind.name, value(kind)])) as Record<TokenKind, T>
}

/** The default price of a kind, derived from prices of kinds listed earlier; undefined if it has none. */
export function defaultPrice(
  { partOf, byDefault }: TokenKindRow,
  prices: PartialTokenPrices,
): Decimal | undefined {
  const { of, times } = byDefault ?? { of: partOf, times: ONE }
  const base = of && prices[of]
  return base && multiply(base, times)
}

/** Fills in missing token prices with the defaults of `TOKEN_KINDS`. Without an input price, all are 0. */
export function completeTokenPrices(stated: PartialTokenPrices): TokenPrices {
  const prices: { -readonly [Kind in TokenKind]?: Decimal } = {}
  for (const kind of TOKEN_KINDS) prices[kind.name] = stated[kind.name] ?? defaultPrice(kind, prices) ?? ZERO
  return prices as TokenPrices
}

/** Converts token prices to decimal texts. */
export function tokenPriceTexts(tokens: TokenPrices): Record<TokenKind, string> {
  return valueForEachTokenKind(({ name }) => decimalText(tokens[name]))
}
