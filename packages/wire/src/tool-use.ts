/** Kinds of tools that providers run during a call. */
export const TOOL_KINDS = [
  'image_generation',
  'code_interpreter',
  'code_execution',
  'file_search',
  'web_search',
  'web_fetch',
  'google_search',
  'google_maps',
  'url_context',
  'mcp',
] as const

/** Kind of a tool that a provider runs. */
export type ToolKind = (typeof TOOL_KINDS)[number]

/** Provider-run tool that a request offers. */
export interface OfferedTool {
  /** Type of the tool as the request states it, such as `web_search_20250305`. */
  readonly type: string
  /** Maximum number of uses that the request allows; undefined if it states none. */
  readonly maxUses?: number | undefined
  /** Form of each use, as in `ToolUse`; undefined if the provider chooses it. */
  readonly form?: string | undefined
}

/** Provider-run tools of a request. */
export interface ProviderTools {
  readonly tools: readonly OfferedTool[]
  /** Maximum number of uses of all of them together that the request allows; undefined if it states none. */
  readonly maxCalls?: number | undefined
}

/** Tokens of the model that draws pictures for another model. */
export interface PictureTokens {
  readonly text: number
  readonly image: number
  readonly output: number
}

/** Uses of a tool, as reported by a response. */
export interface ToolUse {
  readonly kind: ToolKind
  readonly count: number
  /** Form on which the list price depends: `1024x1024/low` for a picture, `4g` for a container. */
  readonly form?: string | undefined
  /** Model that drew pictures; undefined if the response does not name it. */
  readonly model?: string | undefined
  /** Tokens of all pictures, if the response reports them. */
  readonly tokens?: PictureTokens | undefined
  /** The response only cites sources; this counts as a use if the request offered the tool. */
  readonly isCited?: true
}

/** Merges two lists of the same uses: for each kind and form the larger number counts. */
export function mergedUses(one: readonly ToolUse[], other: readonly ToolUse[]): readonly ToolUse[] {
  if (other.length === 0) return one
  const total = (uses: readonly ToolUse[], kind: ToolKind): number =>
    uses.reduce((sum, use) => sum + (use.kind === kind ? use.count : 0), 0)
  const kinds = new Set([...one, ...other].map(({ kind }) => kind))
  return [...kinds].flatMap((kind) => {
    const larger = total(other, kind) > total(one, kind) ? other : one
    return larger.filter((use) => use.kind === kind)
  })
}
