import type { ToolKind } from '@sluice/wire/tool-use'

/** Vendors that charge for tools that they run. */
export type ToolVendor = 'openai' | 'anthropic' | 'google' | 'x-ai' | 'openrouter'

/** What counts as one use of a tool. A prompt counts once, no matter how often the tool was used for it. */
export type ToolUnit = 'picture' | 'container' | 'call' | 'query' | 'prompt'

/** Tool that a vendor runs, with its list price. */
export interface ListedTool {
  readonly vendor: ToolVendor
  readonly kind: ToolKind
  /** Types of the tool in requests. */
  readonly types: RegExp
  /** Models to which the price applies, by the upstream's names; all others if absent. */
  readonly models?: RegExp
  readonly unit: ToolUnit
  /** USD. */
  readonly price: string
  /** USD for forms that have a different price. */
  readonly forms?: Readonly<Record<string, string>>
  /**
   * Tools in the same request that make it free: their types, which end in a version, and the first such
   * version.
   */
  readonly freeBeside?: { readonly types: RegExp; readonly from: number }
  readonly source: string
  /** Date on which the source stated it. */
  readonly date: string
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
} as const

/** Tools of providers. Of several rows for the same tool, the first one that matches the model applies. */
export const LISTED_TOOLS: readonly ListedTool[] = [
  { ...OPENAI, ...LIST, kind: 'web_search', types: /^web_search/, unit: 'call', price: '0.01' },
  { ...OPENAI, ...LIST, kind: 'file_search', types: /^file_search$/, unit: 'call', price: '0.0025' },
  // One session of 20 minutes.
  {
    ...OPENAI,
    kind: 'code_interpreter',
    types: /^(?:code_interpreter|shell)$/,
    unit: 'container',
    price: '0.03',
    forms: { '4g': '0.12', '16g': '0.48', '64g': '1.92' },
  },
  // The most expensive picture, for when neither tokens nor a price of the drawing model are known.
  { ...OPENAI, kind: 'image_generation', types: /^image_generation$/, unit: 'picture', price: '0.25' },
  { ...OPENAI, kind: 'mcp', types: /^mcp$/, unit: 'call', price: '0' },
  { ...ANTHROPIC, ...LIST, kind: 'web_search', types: /^web_search_\d/, unit: 'call', price: '0.01' },
  { ...ANTHROPIC, kind: 'web_fetch', types: /^web_fetch_\d/, unit: 'call', price: '0' },
  // One hour of a container. The 1,550 free hours per month of an organization are not known here.
  {
    ...ANTHROPIC,
    kind: 'code_execution',
    types: /^code_execution_\d/,
    unit: 'container',
    price: '0.05',
    freeBeside: { types: /^web_(?:search|fetch)_(\d{8})$/, from: 20_260_209 },
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

/** The prices in this list as text; a changed text is another version of the prices. */
export const TOOL_LIST_TEXT = JSON.stringify(
  LISTED_TOOLS.map((row) => ({ ...row, models: row.models?.source })),
)

/** Types of tools that clients run themselves, or that no vendor charges for. */
export const FREE_TOOLS: Readonly<Record<'openai' | 'anthropic' | 'google', RegExp>> = {
  openai:
    /^(?:function|custom|namespace|local_shell|apply_patch|tool_search|computer|computer_use_preview.*|computer_use)$/,
  anthropic: /^(?:custom|bash_\d.*|text_editor_\d.*|computer_\d.*|memory_\d.*|tool_search_tool_.*)$/,
  google: /^(?:functionDeclarations|computerUse)$/,
}

/** Vendors by the host of the upstream. */
export const VENDOR_HOSTS: readonly (readonly [RegExp, ToolVendor])[] = [
  [/(?:^|\.)(?:openai|azure)\.com$/, 'openai'],
  [/(?:^|\.)anthropic\.com$/, 'anthropic'],
  [/(?:^|\.)googleapis\.com$/, 'google'],
  [/(?:^|\.)x\.ai$/, 'x-ai'],
  [/(?:^|\.)openrouter\.ai$/, 'openrouter'],
]
