import type { ConversionProtocol } from './protocols.ts'

/**
 * A request in a form that at least two dialects can express. Decoders create it, rules change it, and
 * encoders write it. It is used only for calls that are converted to another dialect; other calls keep their
 * bytes.
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
  /** Integer that makes replies reproducible; chat and Gemini have it. */
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
  /** Whether the client requested usage at the end of a stream; only some dialects have this option. */
  readonly includeUsage: boolean
  /** Absent if only one choice is requested. */
  readonly choices?: RequestedChoices
  /** Log probabilities of the reply's tokens; absent if not requested. */
  readonly logprobs?: RequestedLogprobs
  /**
   * The id of the client's user, from responses and messages requests. It is not set for chat requests:
   * `docs/api.md: Chat completions`, fields without an equivalent.
   */
  readonly endUser?: EndUser
  /** Whether the request demands the provider's standard tier, in responses and messages requests. */
  readonly isStandardTier?: true
  /**
   * Whether requests to the upstream may name any tier, although its dialect itself defines only a few.
   */
  readonly takesAnyTier?: true
  /** Fields that some dialects have under the same name; undefined if there are none. */
  readonly shared?: SharedFields
  /** Members of the request, as JSON text, which the response repeats in some dialects. */
  readonly repeated?: RepeatedFields
}

/** Number of choices that a client requests. */
export interface RequestedChoices {
  /** At least 2. */
  readonly count: number
  /** The field in which the client states the count. */
  readonly field: 'n' | 'candidateCount'
}

/** Log probabilities that a client requests. */
export interface RequestedLogprobs {
  /** Number of the most probable tokens to report at each position; undefined if the client requests none. */
  readonly top: number | undefined
}

/** The id that identifies the client's user. */
export interface EndUser {
  readonly id: string
  /** The field in which the client states the id. */
  readonly field: 'metadata' | 'safety_identifier' | 'user'
}

/** Fields that have the same name and meaning in chat and responses. */
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
  /** The JSON text of the schema, unchanged. */
  readonly schema: string
  /** Name that the client gave to the schema, in dialects that have one. */
  readonly name: string | undefined
  readonly description: string | undefined
  /** Whether the provider enforces the schema; undefined means the dialect's default. */
  readonly strict: boolean | undefined
}

/** A web search by the provider, and its limits. */
export interface WebSearch {
  readonly maxUses: number
  /**
   * Whether the client only offers the search, as one tool among others. It is then left out unless the
   * upstream is known to support it.
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
  /** No thinking. `effort` is the effort with which the client switched it off. */
  | { readonly kind: 'off'; readonly effort?: 'none' | 'minimal' }
  /** A maximum number of thinking tokens. */
  | { readonly kind: 'budget'; readonly tokens: number }
  /**
   * The model decides how much it thinks, guided by an effort; undefined means the model's default effort.
   */
  | { readonly kind: 'adaptive'; readonly effort: Effort | undefined }

/**
 * How much the model should think. `thinking.ts` maps it to tokens and to the names in the dialects.
 */
export type Effort = 'low' | 'medium' | 'high' | 'xhigh' | 'max'

/** The messages of one side, until the other side continues. */
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

/** Cache mark: the prompt may be cached up to this point. */
export interface Cache {
  /** Undefined means the default of the field: 5m for `cache_control`, 30m for `prompt_cache_breakpoint`. */
  readonly ttl: CacheLifetime | undefined
  /** The field that expresses the mark: in the client's dialect, and after conversion in the upstream's. */
  readonly field?: 'prompt_cache_breakpoint'
}

/** Lifetimes of cached prompts that dialects have, shortest first. */
export const CACHE_LIFETIMES = ['5m', '30m', '1h', '12h'] as const

/** Lifetime of a cached prompt. */
export type CacheLifetime = (typeof CACHE_LIFETIMES)[number]

/** A system text. `at` is its position if it came after the first turn. */
export interface SystemText extends TextPart {
  readonly at?: PartPosition
}

/**
 * A position before a part of a turn; both are given by index. If the turn does not exist yet, it is the
 * position before its first part.
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

/** An image, a document or an audio recording. */
export interface MediaPart {
  readonly kind: 'media'
  readonly source: MediaSource
  /** Name of a document, if the client gave one. */
  readonly name?: string
  /** Resolution of an image, as chat and responses name it; absent means the model's default. */
  readonly detail?: string
  readonly cache?: Cache
}

/** Source of media: inline data or a URL. */
export type MediaSource =
  /** `data` is base64. The type is as stated, or `application/octet-stream` if unknown. */
  | { readonly kind: 'inline'; readonly mediaType: string; readonly data: string }
  /** `mediaType` is a type, or a family such as `image/*`; undefined if unknown. */
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
  /** Whether the call is one of a custom tool, which a chat client declared. */
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

/**
 * A part that only one dialect has. The encoder of that dialect writes it back unchanged; other encoders
 * leave it out and report it as dropped.
 */
export interface OpaquePart {
  readonly kind: 'opaque'
  readonly protocol: ConversionProtocol
  readonly value: unknown
}

/**
 * A signature by which a provider recognizes a part that its own model wrote. Only the encoder of the same
 * dialect writes it.
 */
export interface Proof {
  readonly protocol: ConversionProtocol
  readonly value: string
  /**
   * The part that carries the signature of the thought, in dialects that do not sign thoughts themselves: the
   * next call, or an empty text at this position.
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
  /** How the client declared the tool; absent if it is a function with this name. */
  readonly form?: ToolForm
}

/**
 * A tool of the client's dialect that is sent to the upstream as a function. Its calls are converted back for
 * the client.
 */
export interface ToolForm {
  /** `custom`: the tool takes plain text. `function`: a function in a namespace. */
  readonly type: 'function' | 'custom' | 'local_shell' | 'shell' | 'apply_patch' | 'tool_search'
  /** The name that the client uses. */
  readonly name: string
  readonly namespace?: string
  /** Definition of a custom tool in the format of chat, for dialects that have custom tools. */
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

/** A web search that a provider ran during its reply, with the facts that several dialects can express. */
export interface SearchPart {
  readonly kind: 'search'
  /**
   * Dialect of the provider that ran the search. For messages, the opaque parts before it contain what the
   * provider needs when the client sends the conversation again.
   */
  readonly protocol: ConversionProtocol
  /** Empty if the provider does not report it. */
  readonly query: string
  /** The pages that were found; empty if the provider does not report them. */
  readonly pages: readonly FoundPage[]
  readonly isFailed: boolean
}

/** Web page that a search found. */
export interface FoundPage {
  readonly url: string
  /** Empty if the provider does not report it. */
  readonly title: string
}
