import type { Fields } from './field.ts'
import { asRecord } from './json/record.ts'
import type { ScannedObject } from './json/scanned-object.ts'
import type { ReroutingField } from './upstream-settings.ts'
import type { Usage } from './usage.ts'

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

/** A tool that a request offers to the model, and that the provider runs. */
export interface OfferedTool {
  /** Type of the tool as the request states it, such as `web_search_20250305`. */
  readonly type: string
  /** Maximum number of uses that the request allows; undefined if it states none. */
  readonly maxUses?: number | undefined
  /**
   * The field that a channel must allow for the tool to be sent: `models` if the provider asks another model
   * when it runs the tool. Absent if every channel is sent the tool.
   */
  readonly allowedBy?: ReroutingField
  /** The other model, and the maximum of its output tokens in one use, if the provider reports its tokens. */
  readonly advisor?: { readonly model: string; readonly maxTokens: number | undefined }
  /** Maximum tokens of the results of one use that the request allows; undefined if it states none. */
  readonly maxResultTokens?: number | undefined
  /**
   * Variant of each use on which the price depends, such as `1024x1024/low` for an image; undefined if the
   * provider chooses it.
   */
  readonly form?: string | undefined
}

/** The tools of a request that the provider runs. */
export interface ProviderTools {
  readonly tools: readonly OfferedTool[]
  /** Maximum number of uses of all these tools together; undefined if the request does not limit them. */
  readonly maxCalls?: number | undefined
}

/** Reads a maximum that a request states for its tools. Anything but a positive integer states none. */
export function statedMaximum(value: unknown): number | undefined {
  return Number.isSafeInteger(value) && (value as number) > 0 ? (value as number) : undefined
}

/** Tokens of the image model that draws images when another model uses it as a tool. */
export interface ImageModelTokens {
  readonly text: number
  readonly image: number
  readonly output: number
}

/** Tokens of another model that the provider asked during a call. They are not among those of the call. */
export interface AdvisorTokens {
  /** Empty if the provider does not name it. */
  readonly model: string
  readonly usage: Usage
}

/** Uses of one tool that a response reports. */
export interface ToolUse {
  readonly kind: ToolKind
  readonly count: number
  /**
   * Variant on which the list price depends: `1024x1024/low` for an image, `4g` of memory for a container.
   */
  readonly form?: string | undefined
  /** Model that drew the images; undefined if the response does not name it. */
  readonly model?: string | undefined
  /** Tokens of all images together, if the response reports them. */
  readonly tokens?: ImageModelTokens | undefined
  /**
   * Whether the response only cites sources that the tool found. This counts as a use if the request offered
   * the tool.
   */
  readonly isCited?: true
}

/** Merges two reports of the same uses. For each kind, the report with more uses is taken. */
export function mergeToolUses(one: readonly ToolUse[], other: readonly ToolUse[]): readonly ToolUse[] {
  if (other.length === 0) return one
  const total = (uses: readonly ToolUse[], kind: ToolKind): number =>
    uses.reduce((sum, use) => sum + (use.kind === kind ? use.count : 0), 0)
  const kinds = new Set([...one, ...other].map(({ kind }) => kind))
  return [...kinds].flatMap((kind) => {
    const larger = total(other, kind) > total(one, kind) ? other : one
    return larger.filter((use) => use.kind === kind)
  })
}

/** Uses of provider-run tools that a response has reported so far. */
export interface ReportedToolUses {
  /** One entry for each kind and variant. */
  readonly uses: readonly ToolUse[]
  /** Kind of each use, in the order in which the uses began. */
  readonly begun: readonly ToolKind[]
}

const NONE: readonly never[] = []
/** Maximum number of uses in one response that are recorded one by one; further uses are not recorded. */
export const MAX_USES = 10_000

/** The uses in a response that reports none. */
export const NO_TOOL_USES: ReportedToolUses = { uses: NONE, begun: NONE }

/**
 * Counts the uses of tools in a response. Each use has a key, so that a use that is reported twice is counted
 * once.
 */
export class ToolUseCounter implements ReportedToolUses {
  #uses: Map<string, ToolUse> | undefined
  #begun: ToolKind[] | undefined

  get begun(): readonly ToolKind[] {
    return this.#begun ?? NONE
  }

  get uses(): readonly ToolUse[] {
    if (!this.#uses) return NONE
    const sums = new Map<string, ToolUse>()
    for (const use of this.#uses.values()) {
      const key = `${use.kind} ${use.form ?? ''}`
      sums.set(key, { ...use, count: use.count + (sums.get(key)?.count ?? 0) })
    }
    return [...sums.values()]
  }

  /** Records a use. A later use with the same key replaces it. */
  note(key: string, use: ToolUse): void {
    const uses = (this.#uses ??= new Map())
    const before = uses.get(key)
    if (!before && uses.size >= MAX_USES) return
    uses.set(key, use)
    for (let count = before?.count ?? 0; count < Math.min(use.count, MAX_USES); count++)
      (this.#begun ??= []).push(use.kind)
  }

  /** Removes a recorded use, because it turned out not to be a use of its own. */
  remove(key: string): void {
    this.#uses?.delete(key)
  }
}

export function countUsesOfKind(uses: readonly ToolUse[], kind: ToolKind): number {
  return uses.reduce((sum, use) => (use.kind === kind ? sum + use.count : sum), 0)
}

/** Returns the uses of all kinds of tools except the given kinds. */
export function usesOfOtherKinds(
  uses: readonly ToolUse[],
  ...kinds: readonly ToolKind[]
): readonly ToolUse[] {
  return uses.length === 0 ? uses : uses.filter(({ kind }) => !kinds.includes(kind))
}

/**
 * Parses the tools of a request, except tools whose `type` is one of `types`. Functions are excluded in this
 * way, because their schemas are a large part of the requests of coding agents.
 */
export function toolsExceptTypes(scan: ScannedObject, types: ReadonlySet<unknown>): readonly Fields[] {
  const list = scan.span('tools')
  if (!list || scan.kindOf(list.node) !== 'array') return []
  return scan.elements(list.node).flatMap((tool): Fields[] => {
    if (scan.kindOf(tool) !== 'object') return []
    const type = scan.memberOf(tool, 'type')
    return type === undefined || types.has(scan.parse(type)) ? [] : [asRecord(scan.parse(tool)) ?? {}]
  })
}
