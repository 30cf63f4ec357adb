import type { Channel, ProviderName } from './records/channel.ts'
import type { ProtocolName } from '@sluice/wire/protocols'
import { UPSTREAM_PROTOCOLS } from './protocols.ts'
import { type Decimal, isMore, parseDecimal, ZERO } from './decimal.ts'
import { type ImageForm, imagePrice } from './image-price.ts'
import type { Price } from './price.ts'
import { FREE_TOOLS, LISTED_TOOLS, type ListedTool, type ToolVendor, VENDOR_HOSTS } from './tool-list.ts'
import type { OfferedTool, ToolKind, ToolUse } from '@sluice/wire/tool-use'
import type { PricedTool, ToolPrices } from './tool-use.ts'

/** Everything that determines the prices of a call's tools at one upstream. */
export interface ToolTerms {
  /** Tool prices stated in the price of the model. */
  readonly stated: ToolPrices
  readonly vendor: ToolVendor
  /** Dialect in which the upstream is called. */
  readonly dialect: ProtocolName
  /** The upstream's name of the model. */
  readonly model: string
  /** Tools offered by the request, if they are known. */
  readonly offered: readonly OfferedTool[]
  /** Price of a model that draws pictures; undefined if it has none. */
  priceOf(model: string): Price | undefined
}

/**
 * Tool of a request and the kind that determines its price; `kind` is undefined for a tool that is not in any
 * list.
 */
export interface KnownTool extends OfferedTool {
  readonly kind: ToolKind | undefined
}

/** Model assumed to draw pictures if a response does not name one. */
const USUAL_PAINTER = 'gpt-image-1'
const PROVIDERS: Readonly<Record<ProviderName, ToolVendor | undefined>> = {
  azure: 'openai',
  bedrock: undefined,
  vertex: 'google',
}

/**
 * The vendor whose list applies to a channel: that of its provider or host, otherwise that of the dialect.
 */
export function toolVendor(
  { provider, base_url }: Pick<Channel, 'provider' | 'base_url'>,
  dialect: ProtocolName,
): ToolVendor {
  const named = provider === 'generic' ? undefined : PROVIDERS[provider]
  if (named) return named
  const { hostname } = new URL(base_url)
  return VENDOR_HOSTS.find(([host]) => host.test(hostname))?.[1] ?? UPSTREAM_PROTOCOLS[dialect].vendor
}

/** Kinds of tools available at a vendor: those in its list and in the list of the dialect's vendor. */
export function kindsOf({ vendor, dialect }: ToolTerms): ReadonlySet<ToolKind> {
  if (!UPSTREAM_PROTOCOLS[dialect].hasTools) return new Set()
  const vendors = new Set([vendor, UPSTREAM_PROTOCOLS[dialect].vendor])
  return new Set(LISTED_TOOLS.filter((row) => vendors.has(row.vendor)).map(({ kind }) => kind))
}

/** Classifies a tool of a request; undefined if it is free. */
export function knownTool(
  tool: OfferedTool,
  { vendor, dialect }: Pick<ToolTerms, 'vendor' | 'dialect'>,
): KnownTool | undefined {
  const own = UPSTREAM_PROTOCOLS[dialect].vendor
  if (FREE_TOOLS[own].test(tool.type)) return undefined
  const listed = inLists(vendor, own, ({ types }) => types.test(tool.type))
  return { ...tool, kind: listed?.kind }
}

/** Prices the tool uses of a response, including `searches` web searches. */
export function pricedTools(searches: number, uses: readonly ToolUse[], terms: ToolTerms): PricedTool[] {
  const all: readonly ToolUse[] = searches > 0 ? [{ kind: 'web_search', count: searches }, ...uses] : uses
  return all
    .map((use) => ({ ...use, kind: kindAt(use.kind, terms) }))
    .flatMap((use) => pricedUse(use, terms))
    .filter(({ count }) => count > 0)
}

/** The kind of a use at a vendor: in Google's dialect, a web search is a Google search. */
export function kindAt(kind: ToolKind, { dialect }: Pick<ToolTerms, 'dialect'>): ToolKind {
  return kind === 'web_search' && UPSTREAM_PROTOCOLS[dialect].vendor === 'google' ? 'google_search' : kind
}

/** USD for one use; the highest price if it depends on something that the response does not report. */
export function priceOfUse(
  { kind, form, model }: Pick<ToolUse, 'kind' | 'form' | 'model'>,
  terms: ToolTerms,
): Decimal {
  const stated = statedPrice(kind, terms)
  if (stated) return stated
  if (kind === 'image_generation') {
    const price = terms.priceOf(model ?? USUAL_PAINTER)
    if (price && Object.keys(price.image).length > 0) return imagePrice(price.image, formOf(form))
  }
  const listed = listedTool(kind, terms)
  if (isFreeBeside(listed, terms)) return ZERO
  const prices = formsOf(listed, form, terms).map((one) => usd(listed.forms?.[one ?? ''] ?? listed.price))
  return prices.reduce((dearest, price) => (isMore(price, dearest) ? price : dearest))
}

function isFreeBeside({ freeBeside }: ListedTool, { offered }: ToolTerms): boolean {
  if (!freeBeside) return false
  const { types, from } = freeBeside
  return offered.some(({ type }) => Number(types.exec(type)?.[1] ?? 0) >= from)
}

/** Forms that a use may have. Responses do not report to which of the offered tools a container belongs. */
function formsOf(
  { kind, forms }: ListedTool,
  form: string | undefined,
  terms: ToolTerms,
): readonly (string | undefined)[] {
  if (!forms) return [form]
  return [
    form,
    ...terms.offered.filter((tool) => knownTool(tool, terms)?.kind === kind).map((one) => one.form),
  ]
}

/** The row of the list that applies to a kind of tool. */
export function listedTool(
  kind: ToolKind,
  { vendor, dialect, model }: Pick<ToolTerms, 'vendor' | 'dialect' | 'model'>,
): ListedTool {
  const found = inLists(
    vendor,
    UPSTREAM_PROTOCOLS[dialect].vendor,
    (row) => row.kind === kind && (row.models?.test(model) ?? true),
  )
  const listed = found ?? LISTED_TOOLS.find((row) => row.kind === kind)
  if (!listed) throw new Error(`no vendor lists ${kind}`)
  return listed
}

function inLists(
  vendor: ToolVendor,
  own: ToolVendor,
  fits: (row: ListedTool) => boolean,
): ListedTool | undefined {
  return (
    LISTED_TOOLS.find((row) => row.vendor === vendor && fits(row)) ??
    LISTED_TOOLS.find((row) => row.vendor === own && fits(row))
  )
}

// A stated price of web searches also applies to Google's, which used to have no separate name.
function statedPrice(kind: ToolKind, { stated }: ToolTerms): Decimal | undefined {
  return stated[kind] ?? (kind === 'google_search' ? stated.web_search : undefined)
}

function pricedUse(use: ToolUse, terms: ToolTerms): PricedTool[] {
  const { kind, count, tokens } = use
  if (kind === 'image_generation' && tokens && !statedPrice(kind, terms)) {
    const prices = terms.priceOf(use.model ?? USUAL_PAINTER)?.tokens
    if (prices)
      return [
        { kind: 'image_generation_input', count: tokens.text, price: prices.input },
        { kind: 'image_generation_image_input', count: tokens.image, price: prices.image_input },
        { kind: 'image_generation_output', count: tokens.output, price: prices.image_output },
      ]
  }
  const isOnce = !statedPrice(kind, terms) && listedTool(kind, terms).unit === 'prompt'
  return [{ kind, count: isOnce ? Math.min(count, 1) : count, price: priceOfUse(use, terms) }]
}

function formOf(form: string | undefined): ImageForm {
  const [size, quality] = form?.split('/') ?? []
  return { size, quality }
}

function usd(text: string): Decimal {
  return parseDecimal(text) ?? ZERO
}
