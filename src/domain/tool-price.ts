import type { ProtocolName } from '@sluice/wire/protocols'
import type { OfferedTool, ToolKind, ToolUse } from '@sluice/wire/tool-use'
import { type Decimal, isGreaterDecimal, parseDecimal, ZERO } from './decimal.ts'
import { UPSTREAM_PROTOCOLS } from './protocols.ts'
import { type ImageForm, imagePrice, type Price } from './price.ts'
import type { Channel, ProviderName } from './records/channel.ts'
import type { DataSource } from './price-data/vendor-service.ts'
import type { PricedTool, ToolPrices } from './tool-use.ts'

/** Everything that determines what a call's tools cost at an upstream. */
export interface ToolPricingInputs {
  /** Tool prices that the model's price states. */
  readonly stated: ToolPrices
  readonly vendor: ToolVendor
  /** Protocol in which the upstream is called. */
  readonly dialect: ProtocolName
  /** The upstream's name for the model. */
  readonly model: string
  /** Tools that the request offers to the model. */
  readonly offered: readonly OfferedTool[]
  /** Price of a model that generates images; undefined if it has none. */
  priceOf(model: string): Price | undefined
}

/**
 * A tool in a request, with the kind that determines its price. `kind` is undefined if no price list contains
 * the tool.
 */
export interface KnownTool extends OfferedTool {
  readonly kind: ToolKind | undefined
  /** Whether the price of another model, which the provider asks, is known. */
  readonly isPricedByModel?: true
}

/** The model that is assumed to generate images if a response does not name one. */
const USUAL_PAINTER = 'gpt-image-1'
const PROVIDERS: Readonly<Record<ProviderName, ToolVendor | undefined>> = {
  azure: 'openai',
  bedrock: undefined,
  vertex: 'google',
}

/**
 * The vendor whose tool prices apply to a channel: that of its provider or host, otherwise the usual vendor
 * of the protocol.
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

/**
 * Kinds of tools that a vendor offers: those in its own price list and in that of the protocol's usual
 * vendor.
 */
export function toolKindsOfVendor({ vendor, dialect }: ToolPricingInputs): ReadonlySet<ToolKind> {
  if (!UPSTREAM_PROTOCOLS[dialect].hasTools) return new Set()
  const vendors = new Set([vendor, UPSTREAM_PROTOCOLS[dialect].vendor])
  return new Set(LISTED_TOOLS.filter((row) => vendors.has(row.vendor)).map(({ kind }) => kind))
}

/** Finds the kind of a tool in a request; undefined if the tool is free. */
export function knownTool(
  tool: OfferedTool,
  { vendor, dialect }: Pick<ToolPricingInputs, 'vendor' | 'dialect'>,
): KnownTool | undefined {
  const own = UPSTREAM_PROTOCOLS[dialect].vendor
  if (FREE_TOOLS[own].test(tool.type)) return undefined
  const listed = inLists(vendor, own, ({ types }) => types.test(tool.type))
  return { ...tool, kind: listed?.kind }
}

/** Adds prices to the tool uses of a response and to its `searches` web searches. */
export function pricedTools(
  searches: number,
  uses: readonly ToolUse[],
  pricing: ToolPricingInputs,
): PricedTool[] {
  const all: readonly ToolUse[] = searches > 0 ? [{ kind: 'web_search', count: searches }, ...uses] : uses
  return all
    .map((use) => ({ ...use, kind: toolKindAtVendor(use.kind, pricing) }))
    .flatMap((use) => pricedUse(use, pricing))
    .filter(({ count }) => count > 0)
}

/** The kind of tool under which a use is charged: with Google's protocol, a web search is a Google search. */
export function toolKindAtVendor(kind: ToolKind, { dialect }: Pick<ToolPricingInputs, 'dialect'>): ToolKind {
  return kind === 'web_search' && UPSTREAM_PROTOCOLS[dialect].vendor === 'google' ? 'google_search' : kind
}

/**
 * USD for one use of a tool. If the price depends on something that the response does not report, the highest
 * price.
 */
export function priceOfToolUse(
  { kind, form, model }: Pick<ToolUse, 'kind' | 'form' | 'model'>,
  pricing: ToolPricingInputs,
): Decimal {
  const stated = statedPrice(kind, pricing)
  if (stated) return stated
  if (kind === 'image_generation') {
    const price = pricing.priceOf(model ?? USUAL_PAINTER)
    if (price && Object.keys(price.image).length > 0) return imagePrice(price.image, formOf(form))
  }
  const listed = listedToolPrice(kind, pricing)
  if (isFreeBeside(listed, pricing)) return ZERO
  const prices = formsOf(listed, form, pricing).map((one) => usd(listed.forms?.[one ?? ''] ?? listed.price))
  return prices.reduce((dearest, price) => (isGreaterDecimal(price, dearest) ? price : dearest))
}

function isFreeBeside({ freeTogetherWith }: ListedTool, { offered }: ToolPricingInputs): boolean {
  if (!freeTogetherWith) return false
  const { types, from } = freeTogetherWith
  return offered.some(({ type }) => Number(types.exec(type)?.[1] ?? 0) >= from)
}

/**
 * Forms (such as container sizes) that a use may have. Responses do not report which offered tool a container
 * belongs to, so all offered forms are possible.
 */
function formsOf(
  { kind, forms }: ListedTool,
  form: string | undefined,
  pricing: ToolPricingInputs,
): readonly (string | undefined)[] {
  if (!forms) return [form]
  return [
    form,
    ...pricing.offered.filter((tool) => knownTool(tool, pricing)?.kind === kind).map((one) => one.form),
  ]
}

/** The row of the price list that applies to a kind of tool. */
export function listedToolPrice(
  kind: ToolKind,
  { vendor, dialect, model }: Pick<ToolPricingInputs, 'vendor' | 'dialect' | 'model'>,
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

// A stated price of web searches also applies to Google searches, which used to have no price of their own.
function statedPrice(kind: ToolKind, { stated }: ToolPricingInputs): Decimal | undefined {
  return stated[kind] ?? (kind === 'google_search' ? stated.web_search : undefined)
}

function pricedUse(use: ToolUse, pricing: ToolPricingInputs): PricedTool[] {
  const { kind, count, tokens } = use
  if (kind === 'image_generation' && tokens && !statedPrice(kind, pricing)) {
    const prices = pricing.priceOf(use.model ?? USUAL_PAINTER)?.tokens
    if (prices)
      return [
        { kind: 'image_generation_input', count: tokens.text, price: prices.input },
        { kind: 'image_generation_image_input', count: tokens.image, price: prices.image_input },
        { kind: 'image_generation_output', count: tokens.output, price: prices.image_output },
      ]
  }
  const isOnce = !statedPrice(kind, pricing) && listedToolPrice(kind, pricing).unit === 'prompt'
  return [{ kind, count: isOnce ? Math.min(count, 1) : count, price: priceOfToolUse(use, pricing) }]
}

function formOf(form: string | undefined): ImageForm {
  const [size, quality] = form?.split('/') ?? []
  return { size, quality }
}

function usd(text: string): Decimal {
  return parseDecimal(text) ?? ZERO
}

/** Vendors that charge for tools that they run. */
type ToolVendor = 'openai' | 'anthropic' | 'google' | 'x-ai' | 'openrouter'

/**
 * What is counted as one use of a tool. `prompt`: once per request, no matter how often the tool was used.
 */
type ToolUnit = 'picture' | 'container' | 'call' | 'query' | 'prompt'

/** A tool that a vendor runs, with its list price. */
interface ListedTool extends DataSource {
  readonly vendor: ToolVendor
  readonly kind: ToolKind
  /** Matches the type of the tool in requests. */
  readonly types: RegExp
  /** Matches the models to which the price applies, by the upstream's names; all others if absent. */
  readonly models?: RegExp
  readonly unit: ToolUnit
  /** USD per use, as decimal text. */
  readonly price: string
  /** USD per use of forms that have a different price, such as larger containers. */
  readonly forms?: Readonly<Record<string, string>>
  /**
   * Tools that make this one free if the same request offers them. Their types end in a version; versions
   * before `from` do not make it free.
   */
  readonly freeTogetherWith?: { readonly types: RegExp; readonly from: number }
}

const LIST = { source: '@pydantic/genai-prices 0.1.8', date: '2026-11-23' } as const
const OPENAI = {
  vendor: 'openai',
  source: 'developers.openai.com/api/docs/pricing',
  date: '2026-11-23',
} as const
const ANTHROPIC = {
  vendor: 'anthropic',
  source: 'platform.claude.com/docs/en/about-claude/pricing',
  date: '2026-11-23',
} as const
const GOOGLE = {
  vendor: 'google',
  source: 'ai.google.dev/gemini-api/docs/pricing',
  date: '2026-11-23',
} as const
const XAI = { vendor: 'x-ai', source: 'docs.x.ai/developers/pricing.md', date: '2026-11-23' } as const
const OPENROUTER = {
  vendor: 'openrouter',
  source: 'openrouter.ai/docs/features/web-search',
  date: '2026-11-23',
  differs:
    'the engine that searches for any model, at $4 per 1,000 results and five results; the data list the searches of the models themselves',
} as const

/** Price list of the tools that providers run. If several rows for a tool match, the first one applies. */
export const LISTED_TOOLS: readonly ListedTool[] = [
  { ...OPENAI, ...LIST, kind: 'web_search', types: /^web_search/, unit: 'call', price: '0.01' },
  { ...OPENAI, ...LIST, kind: 'file_search', types: /^file_search$/, unit: 'call', price: '0.0025' },
  // The price is for each 20 minutes of a container.
  {
    ...OPENAI,
    kind: 'code_interpreter',
    types: /^(?:code_interpreter|shell)$/,
    unit: 'container',
    price: '0.03',
    forms: { '4g': '0.12', '16g': '0.48', '64g': '1.92' },
  },
  // The most expensive image; it applies if neither tokens nor the price of the image model are known.
  { ...OPENAI, kind: 'image_generation', types: /^image_generation$/, unit: 'picture', price: '0.25' },
  { ...OPENAI, kind: 'mcp', types: /^mcp$/, unit: 'call', price: '0' },
  { ...ANTHROPIC, ...LIST, kind: 'web_search', types: /^web_search_\d/, unit: 'call', price: '0.01' },
  { ...ANTHROPIC, kind: 'web_fetch', types: /^web_fetch_\d/, unit: 'call', price: '0' },
  // The price is for one hour of a container. The free 1,550 hours per month and organization are ignored,
  // because the gateway cannot count them.
  {
    ...ANTHROPIC,
    kind: 'code_execution',
    types: /^code_execution_\d/,
    unit: 'container',
    price: '0.05',
    freeTogetherWith: { types: /^web_(?:search|fetch)_(\d{8})$/, from: 20_260_209 },
  },
  { ...ANTHROPIC, kind: 'mcp', types: /^mcp_toolset$/, unit: 'call', price: '0' },
  {
    ...GOOGLE,
    kind: 'google_search',
    types: /^(?:googleSearch|googleSearchRetrieval|enterpriseWebSearch)$/,
    models: /gemini-[12](?!\d)/,
    unit: 'prompt',
    price: '0.035',
  },
  {
    ...GOOGLE,
    kind: 'google_search',
    types: /^(?:googleSearch|googleSearchRetrieval|enterpriseWebSearch)$/,
    unit: 'query',
    price: '0.014',
  },
  { ...GOOGLE, kind: 'google_maps', types: /^googleMaps$/, unit: 'prompt', price: '0.025' },
  { ...GOOGLE, kind: 'url_context', types: /^urlContext$/, unit: 'call', price: '0' },
  { ...GOOGLE, kind: 'code_execution', types: /^codeExecution$/, unit: 'container', price: '0' },
  { ...GOOGLE, kind: 'file_search', types: /^fileSearch$/, unit: 'call', price: '0' },
  { ...GOOGLE, kind: 'mcp', types: /^mcpServers$/, unit: 'call', price: '0' },
  { ...XAI, kind: 'web_search', types: /^(?:web|x)_search/, unit: 'call', price: '0.005' },
  {
    ...XAI,
    kind: 'code_interpreter',
    types: /^code_(?:interpreter|execution)$/,
    unit: 'call',
    price: '0.005',
  },
  { ...XAI, kind: 'file_search', types: /^(?:file|collections)_search$/, unit: 'call', price: '0.0025' },
  { ...XAI, kind: 'mcp', types: /^mcp$/, unit: 'call', price: '0' },
  { ...OPENROUTER, kind: 'web_search', types: /^(?:openrouter:)?web_search/, unit: 'call', price: '0.02' },
]

/** The price list as text, which is hashed into the version of the prices. */
export const TOOL_LIST_TEXT = JSON.stringify(
  LISTED_TOOLS.map((row) => ({ ...row, models: row.models?.source })),
)

/** Types of tools that clients run themselves, or that no vendor charges for. */
const FREE_TOOLS: Readonly<Record<'openai' | 'anthropic' | 'google', RegExp>> = {
  openai:
    /^(?:function|custom|namespace|local_shell|apply_patch|tool_search|computer|computer_use_preview.*|computer_use)$/,
  anthropic: /^(?:custom|bash_\d.*|text_editor_\d.*|computer_\d.*|memory_\d.*|tool_search_tool_.*)$/,
  google: /^(?:functionDeclarations|computerUse)$/,
}

/** Vendors by the host of the upstream. */
const VENDOR_HOSTS: readonly (readonly [RegExp, ToolVendor])[] = [
  [/(?:^|\.)(?:openai|azure)\.com$/, 'openai'],
  [/(?:^|\.)anthropic\.com$/, 'anthropic'],
  [/(?:^|\.)googleapis\.com$/, 'google'],
  [/(?:^|\.)x\.ai$/, 'x-ai'],
  [/(?:^|\.)openrouter\.ai$/, 'openrouter'],
]
