import type { ConversionProtocol } from '../domain/protocols.ts'
import type { SearchPart } from './provider-search.ts'

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
  /** Undefined = the dialect's default. */
  readonly toolChoice: ToolChoice | undefined
  /** Whether several tools may be called at once; undefined = the dialect's default. */
  readonly parallelTools: boolean | undefined
  readonly maxTokens: number | undefined
  readonly temperature: number | undefined
  readonly topP: number | undefined
  readonly topK: number | undefined
  /** Integer that makes replies repeatable, as chat and Gemini take it. */
  readonly seed: number | undefined
  /** From -2 to 2, as chat and Gemini take it. */
  readonly presencePenalty: number | undefined
  /** From -2 to 2, as chat and Gemini take it. */
  readonly frequencyPenalty: number | undefined
  readonly stop: readonly string[]
  /** Undefined = not stated. */
  readonly thinking: Thinking | undefined
  /** Required form of the reply's text; undefined = any. */
  readonly outputFormat: OutputFormat | undefined
  /** Web search by the provider; undefined = none. */
  readonly webSearch: WebSearch | undefined
  /** Whether the client asked for usage at the end of a stream, in dialects that need it. */
  readonly includeUsage: boolean
  /** Several choices; absent = one. */
  readonly choices?: ChoicesAsked
  /** Log probabilities of the reply's tokens; absent = none. */
  readonly logprobs?: LogprobsAsked
  /**
   * Identifier of the client's user, as responses and messages state it. Requests of chat have none here:
   * `docs/api.md: Chat completions`, fields without an equivalent.
   */
  readonly endUser?: EndUser
  /** Whether the request asks for the provider's standard tier, as responses and messages state it. */
  readonly isStandardTier?: true
  /** Fields that some dialects share by name; undefined = none. */
  readonly shared?: SharedFields
  /** Members of the request that the response repeats in some dialects, as JSON text. */
  readonly repeated?: RepeatedFields
}

/** Several choices that a client asks for. */
export interface ChoicesAsked {
  /** At least 2. */
  readonly count: number
  /** Field in which the client states it. */
  readonly field: 'n' | 'candidateCount'
}

/** Log probabilities that a client asks for. */
export interface LogprobsAsked {
  /** Most probable tokens that are stated for each place; undefined = none. */
  readonly top: number | undefined
}

/** Identifier of the client's user. */
export interface EndUser {
  readonly id: string
  /** Field in which the client states it. */
  readonly field: 'metadata' | 'safety_identifier' | 'user'
}

/** Fields that chat and responses share by name and meaning. */
export const SHARED_FIELDS = [
  'metadata',
  'prompt_cache_key',
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
export type Asked = Pick<Conversation, 'tools' | 'repeated'>

/** Required form of a reply's text. */
export type OutputFormat =
  /** Any JSON object. */
  { readonly kind: 'json-object' } | OutputSchema

/** JSON that matches a schema. */
export interface OutputSchema {
  readonly kind: 'json-schema'
  /** Text of a JSON object, as it came. */
  readonly schema: string
  /** Name that the client gave it, where the dialect has one. */
  readonly name: string | undefined
  readonly description: string | undefined
  /** Whether the provider enforces the schema; undefined = the dialect's default. */
  readonly strict: boolean | undefined
}

/** Web search by the provider, with its limits. */
export interface WebSearch {
  readonly maxUses: number
  /**
   * Whether the model may never use it, as one tool among others: it is then left out unless the upstream is
   * known to search.
   */
  readonly isOptional?: true
  /** Whether the client shows the pages that were found. */
  readonly listsPages?: true
  /** Approximate place of the user. */
  readonly location?: SearchLocation
}

/** Approximate place. */
export interface SearchLocation {
  readonly city?: string
  readonly country?: string
  readonly region?: string
  readonly timezone?: string
}

/** Amount of thinking before a reply. */
export type Thinking =
  /** `said`: the effort that the client named for it. */
  | { readonly kind: 'off'; readonly said?: 'none' | 'minimal' }
  /** At most `tokens` tokens. */
  | { readonly kind: 'budget'; readonly tokens: number }
  /** As the model decides, at an effort; undefined = the model's default. */
  | { readonly kind: 'adaptive'; readonly effort: Effort | undefined }

/** Effort of thinking. `effort.ts` maps it to tokens and to the names of dialects. */
export type Effort = 'low' | 'medium' | 'high' | 'xhigh' | 'max'

/** Turn of one side. */
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

/** Mark up to which the prompt may be cached. */
export interface Cache {
  readonly ttl: '5m' | '1h' | undefined
}

/** System text; `at` is its place where it came after the first turn. */
export interface SystemText extends TextPart {
  readonly at?: Place
}

/** Place in front of a part, by number; of a turn that is still to come, its first. */
export interface Place {
  readonly turn: number
  readonly part: number
}

/** Text. */
export interface TextPart {
  readonly kind: 'text'
  readonly text: string
  readonly cache?: Cache
}

/** Image, document or recording. */
export interface MediaPart {
  readonly kind: 'media'
  readonly source: MediaSource
  /** Name of a document, if given. */
  readonly name?: string
  /** Resolution of a picture, as chat and responses name it; absent = the model's default. */
  readonly detail?: string
  readonly cache?: Cache
}

/** Source of media: inline, or a URL. */
export type MediaSource =
  /** `data` is base64; the type is as stated, or `application/octet-stream` if unknown. */
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
  /** JSON text that the model wrote; empty means `{}`. */
  readonly input: string
  /** Whether it is a call of a custom tool of a chat client. */
  readonly isCustom?: true
  readonly cache?: Cache
  readonly proof?: Proof
}

/** Result of a tool. */
export interface ToolResultPart {
  readonly kind: 'tool-result'
  readonly callId: string
  readonly parts: readonly (TextPart | MediaPart | OpaquePart)[]
  readonly isError: boolean
  readonly cache?: Cache
}

/** Part that only one dialect knows: its own encoder writes it back, others drop and report it. */
export interface OpaquePart {
  readonly kind: 'opaque'
  readonly protocol: ConversionProtocol
  readonly value: unknown
}

/** Signature by which a provider recognizes its own part; only its own dialect's encoder writes it. */
export interface Proof {
  readonly protocol: ConversionProtocol
  readonly value: string
  /**
   * Part that is signed in place of the thought, where a dialect signs other parts: the next call, or an
   * empty text at this place.
   */
  readonly signs?: 'call' | 'text'
}

/** Tool that the client offers. */
export interface Tool {
  readonly name: string
  readonly description: string | undefined
  /** Text of a JSON schema, as it came; undefined for a tool without parameters. */
  readonly schema: string | undefined
  readonly strict: boolean | undefined
  readonly cache?: Cache
  /** Form in which the client knows the tool, unless it is a function of this name. */
  readonly form?: ToolForm
}

/** Tool of the client's dialect that is sent as a function: its calls are converted back for the client. */
export interface ToolForm {
  /** `custom` takes plain text; `function` is one in a namespace. */
  readonly type: 'function' | 'custom' | 'local_shell' | 'shell' | 'apply_patch' | 'tool_search'
  /** Name that the client knows. */
  readonly name: string
  readonly namespace?: string
  /** Definition of a custom tool as a chat client writes it, for dialects that have such tools. */
  readonly custom?: CustomDefinition
}

/** Definition of a custom tool. */
export interface CustomDefinition {
  readonly description: string | undefined
  /** Undefined for any text. */
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
