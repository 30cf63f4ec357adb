import type { ConversionProtocol } from './protocols.ts'

/**
 * Request in a form that at least two dialects can express. Decoders create it, rules change it, encoders
 * write it. Only converted calls use it; native calls keep their bytes.
 */
export interface Conversation {
  readonly model: string
  readonly stream: boolean
  /** System and developer texts, in order. */
  readonly system: readonly SystemText[]
  readonly turns: readonly Turn[]
  readonly tools: readonly Tool[]
  /** Undefined means the dialect's default. */
  readonly toolChoice: ToolChoice | undefined
  /** Whether several tools may be called at once; undefined means the dialect's default. */
  readonly parallelTools: boolean | undefined
  readonly maxTokens: number | undefined
  readonly temperature: number | undefined
  readonly topP: number | undefined
  readonly topK: number | undefined
  /** Integer that makes replies repeatable, as in chat and Gemini. */
  readonly seed: number | undefined
  /** From -2 to 2, as in chat and Gemini. */
  readonly presencePenalty: number | undefined
  /** From -2 to 2, as in chat and Gemini. */
  readonly frequencyPenalty: number | undefined
  readonly stop: readonly string[]
  /** Undefined if the request does not state it. */
  readonly thinking: Thinking | undefined
  /** Required format of the reply's text; undefined means any. */
  readonly outputFormat: OutputFormat | undefined
  /** Web search by the provider; undefined if not requested. */
  readonly webSearch: WebSearch | undefined
  /** Whether the client requested usage at the end of a stream, in dialects where it must be requested. */
  readonly includeUsage: boolean
  /** Absent if one choice is requested. */
  readonly choices?: RequestedChoices
  /** Log probabilities of the reply's tokens; absent if not requested. */
  readonly logprobs?: RequestedLogprobs
  /**
   * Identifier of the client's user, from responses and messages requests. For chat requests it is not set:
   * `docs/api.md: Chat completions`, fields without an equivalent.
   */
  readonly endUser?: EndUser
  /** Whether the request demands the provider's standard tier, in responses and messages requests. */
  readonly isStandardTier?: true
  /** Whether requests of the upstream's dialect may name any tier, although the dialect itself lacks most. */
  readonly takesAnyTier?: true
  /**
   * Whether contents are written as lists even where a text would do, because the upstream accepts cache marks: a mark
   * needs a list, and the bytes of a message must stay when its mark moves to a later one.
   */
  readonly listsContent?: true
  /** Fields that some dialects have under the same name; undefined if there are none. */
  readonly shared?: SharedFields
  /** Members of the request that the response repeats in some dialects, as JSON text. */
  readonly repeated?: RepeatedFields
}

/** Number of choices that a client requests. */
export interface RequestedChoices {
  /** At least 2. */
  readonly count: number
  /** The client's field for it. */
  readonly field: 'n' | 'candidateCount'
}

/** Log probabilities that a client requests. */
export interface RequestedLogprobs {
  /** Number of the most probable tokens to report for each position; undefined for none. */
  readonly top: number | undefined
}

/** Identifier of the client's user. */
export interface EndUser {
  readonly id: string
  /** The client's field for it. */
  readonly field: 'metadata' | 'safety_identifier' | 'user'
}

/** Fields that chat and responses have with the same name and meaning. */
export const SHARED_FIELDS = [
  'metadata',
  'prompt_cache_key',
  'prompt_cache_options',
  'prompt_cache_retention',
  'safety_identifier',
  'service_tier',
  'store',
  'user',
  'verbosity',
] as const

/** Name of a field that chat and responses share. */
export type SharedField = (typeof SHARED_FIELDS)[number]

/** Shared fields with the JSON text of their values. */
export type SharedFields = ReadonlyMap<SharedField, string>

/** Members of a request by name, with the JSON text of their values. */
export type RepeatedFields = ReadonlyMap<string, string>

/** Parts of a request that the encoder of its response needs. */
export type ReplyContext = Pick<Conversation, 'tools' | 'repeated'>

/** Required format of a reply's text. */
export type OutputFormat =
  /** Any JSON object. */
  { readonly kind: 'json-object' } | OutputSchema

/** JSON that matches a schema. */
export interface OutputSchema {
  readonly kind: 'json-schema'
  /** Text of a JSON object, unchanged. */
  readonly schema: string
  /** Name that the client gave to the schema, in dialects that have one. */
  readonly name: string | undefined
  readonly description: string | undefined
  /** Whether the provider enforces the schema; undefined means the dialect's default. */
  readonly strict: boolean | undefined
}

/** Web search by the provider, with its limits. */
export interface WebSearch {
  readonly maxUses: number
  /**
   * Whether the search is only offered, as one tool among others. It is then left out unless the upstream is
   * known to search.
   */
  readonly isOptional?: true
  /** Whether the client shows the pages that were found. */
  readonly listsPages?: true
  /** Approximate location of the user. */
  readonly location?: SearchLocation
}

/** Approximate location. */
export interface SearchLocation {
  readonly city?: string
  readonly country?: string
  readonly region?: string
  readonly timezone?: string
}

/** Amount of thinking before a reply. */
export type Thinking =
  /** `said`: the effort with which the client switched thinking off. */
  | { readonly kind: 'off'; readonly effort?: 'none' | 'minimal' }
  /** A maximum in tokens. */
  | { readonly kind: 'budget'; readonly tokens: number }
  /** The model decides, guided by an effort; undefined means the model's default effort. */
  | { readonly kind: 'adaptive'; readonly effort: Effort | undefined }

/** Effort of thinking. `thinking-effort.ts` maps it to tokens and to the names of dialects. */
export type Effort = 'low' | 'medium' | 'high' | 'xhigh' | 'max'

/** Messages of one side, up to the next of the other side. */
export interface Turn {
  readonly role: 'user' | 'assistant'
  readonly parts: readonly Part[]
}

/** Part of a turn. */
export type Part =
  | TextPart
  | MediaPart
  | ThinkingPart
  | ToolCallPart
  | ToolResultPart
  | SearchPart
  | OpaquePart

/** Mark that the prompt may be cached up to this point. */
export interface Cache {
  /** Undefined means the default of the field: 5m for `cache_control`, 30m for `prompt_cache_breakpoint`. */
  readonly ttl: CacheLifetime | undefined
  /** The member that expresses the mark in the client's dialect, and later in the upstream's. */
  readonly field?: 'prompt_cache_breakpoint'
}

/** Lifetimes of cached prompts that some dialect has, ascending. */
export const CACHE_LIFETIMES = ['5m', '30m', '1h', '12h'] as const

/** Lifetime of a cached prompt. */
export type CacheLifetime = (typeof CACHE_LIFETIMES)[number]

/** System text. `at` is its position if it came after the first turn. */
export interface SystemText extends TextPart {
  readonly at?: PartPosition
}

/**
 * Position before a part of a turn, by number. If the turn does not exist yet, the position before its first
 * part.
 */
export interface PartPosition {
  readonly turn: number
  readonly part: number
}

/** Text of a turn. */
export interface TextPart {
  readonly kind: 'text'
  readonly text: string
  readonly cache?: Cache
}

/** Image, document or audio recording. */
export interface MediaPart {
  readonly kind: 'media'
  readonly source: MediaSource
  /** Name of a document, if the client gave one. */
  readonly name?: string
  /** Resolution of an image, in the words of chat and responses; absent means the model's default. */
  readonly detail?: string
  readonly cache?: Cache
}

/** Source of media: inline data or a URL. */
export type MediaSource =
  /** `data` is base64. The type is as stated, or `application/octet-stream` if unknown. */
  | { readonly kind: 'inline'; readonly mediaType: string; readonly data: string }
  /** Media type, or a family such as `image/*`; undefined if unknown. */
  | { readonly kind: 'url'; readonly url: string; readonly mediaType: string | undefined }

/** Thinking of the model before its reply. */
export interface ThinkingPart {
  readonly kind: 'thinking'
  readonly text: string
  readonly proof?: Proof
}

/** Call of one of the client's tools. */
export interface ToolCallPart {
  readonly kind: 'tool-call'
  readonly id: string
  readonly name: string
  /** JSON text as the model wrote it; empty means `{}`. */
  readonly input: string
  /** Whether it calls a custom tool of a chat client. */
  readonly isCustom?: true
  readonly cache?: Cache
  readonly proof?: Proof
}

/** Result of a tool call. */
export interface ToolResultPart {
  readonly kind: 'tool-result'
  readonly callId: string
  readonly parts: readonly (TextPart | MediaPart | OpaquePart)[]
  readonly isError: boolean
  readonly cache?: Cache
}

/** Part that only one dialect has. The encoder of that dialect writes it back; others drop and report it. */
export interface OpaquePart {
  readonly kind: 'opaque'
  readonly protocol: ConversionProtocol
  readonly value: unknown
}

/**
 * Signature by which a provider recognizes a part that its model wrote. Only the encoder of the same dialect
 * writes it.
 */
export interface Proof {
  readonly protocol: ConversionProtocol
  readonly value: string
  /**
   * The part that carries the signature instead of the thought, in dialects that sign other parts: the next
   * call, or an empty text at this position.
   */
  readonly signs?: 'call' | 'text'
}

/** Tool that the client offers. */
export interface Tool {
  readonly name: string
  readonly description: string | undefined
  /** Text of a JSON schema, unchanged; undefined for a tool without parameters. */
  readonly schema: string | undefined
  readonly strict: boolean | undefined
  readonly cache?: Cache
  /** Form in which the client knows the tool; absent if it is a function of this name. */
  readonly form?: ToolForm
}

/** Tool of the client's dialect that is sent as a function. Its calls are converted back for the client. */
export interface ToolForm {
  /** A `custom` tool takes plain text; a `function` here belongs to a namespace. */
  readonly type: 'function' | 'custom' | 'local_shell' | 'shell' | 'apply_patch' | 'tool_search'
  /** The client's name for it. */
  readonly name: string
  readonly namespace?: string
  /** Definition of a custom tool as a chat client writes it, for dialects that have custom tools. */
  readonly custom?: CustomDefinition
}

/** Definition of a custom tool. */
export interface CustomDefinition {
  readonly description: string | undefined
  /** Undefined if any text is allowed. */
  readonly grammar: Grammar | undefined
}

/** Grammar of a custom tool's input. */
export interface Grammar {
  readonly syntax: string
  readonly definition: string
}

/** Constraint on tool calls. */
export type ToolChoice =
  | { readonly kind: 'auto' | 'any' | 'none' }
  | { readonly kind: 'tool'; readonly name: string }

/** Web search that a provider ran while it replied, as far as several dialects can express it. */
export interface SearchPart {
  readonly kind: 'search'
  /**
   * Dialect of the provider that ran the search. In messages, the opaque parts before it contain what that
   * provider wants back.
   */
  readonly protocol: ConversionProtocol
  /** Empty if the provider does not report it. */
  readonly query: string
  /** Pages that were found; none if the provider does not report them. */
  readonly pages: readonly FoundPage[]
  readonly isFailed: boolean
}

/** Web page that a search found. */
export interface FoundPage {
  readonly url: string
  /** Empty if the provider does not report it. */
  readonly title: string
}
