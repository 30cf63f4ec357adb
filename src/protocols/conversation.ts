/**
 * A request in no protocol's words: what at least two of them can say. Decoders make it, rules change it,
 * encoders write it. It is only on the road between two different protocols; calls that keep their protocol
 * keep their bytes.
 */
export interface Conversation {
  readonly model: string
  readonly stream: boolean
  /** What comes before the first turn: system and developer texts, in their order. */
  readonly system: readonly TextPart[]
  readonly turns: readonly Turn[]
  readonly tools: readonly Tool[]
  /** Undefined = the wire's own default. */
  readonly toolChoice: ToolChoice | undefined
  /** Whether several tools may be called at once; undefined = the wire's own default. */
  readonly parallelTools: boolean | undefined
  readonly maxTokens: number | undefined
  readonly temperature: number | undefined
  readonly topP: number | undefined
  readonly topK: number | undefined
  readonly stop: readonly string[]
  /** Undefined = not asked for either way. */
  readonly thinking: Thinking | undefined
  /** The form that the answer must have; undefined = any. */
  readonly outputFormat: OutputFormat | undefined
  /** Web search by the provider; undefined = none. */
  readonly webSearch: WebSearch | undefined
  /** The caller wants usage at the end of a stream, where that has to be asked for. */
  readonly includeUsage: boolean
  /** Fields that some wires share by name and others have not; undefined = none. */
  readonly shared?: SharedFields
  /** What the client's own wire repeats in its response: members of the request, as JSON text. */
  readonly repeated?: RepeatedFields
}

/** Names of fields that chat and responses share, and what they ask for. */
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

/** The name of a field that chat and responses share. */
export type SharedField = (typeof SHARED_FIELDS)[number]

/** Shared fields with the JSON text of their values. */
export type SharedFields = ReadonlyMap<SharedField, string>

/** Members of a request by name, with the JSON text of their values. */
export type RepeatedFields = ReadonlyMap<string, string>

/** What the encoder of a response has to know of the request that it answers. */
export type Asked = Pick<Conversation, 'tools' | 'repeated'>

/** The form of an answer's text. */
export type OutputFormat =
  /** Some JSON object. */
  { readonly kind: 'json-object' } | OutputSchema

/** JSON that matches a schema. */
export interface OutputSchema {
  readonly kind: 'json-schema'
  /** The very text of an object, as it came. */
  readonly schema: string
  /** The caller's name for it, where the wire has one. */
  readonly name: string | undefined
  readonly description: string | undefined
  /** Whether the provider is to enforce the schema; undefined = the wire's own default. */
  readonly strict: boolean | undefined
}

/** Web search by the provider: how often it may search, and for whom. */
export interface WebSearch {
  readonly maxUses: number
  /**
   * It is one tool among others, which the model may never use: it is left out where it is not certain that
   * the upstream can search.
   */
  readonly isOptional?: true
  /** Roughly where the user is. */
  readonly location?: SearchLocation
}

/** A place, as closely as it is known. */
export interface SearchLocation {
  readonly city?: string
  readonly country?: string
  readonly region?: string
  readonly timezone?: string
}

/** How much an answer may think before it speaks. */
export type Thinking =
  | { readonly kind: 'off' }
  /** At most so many tokens. */
  | { readonly kind: 'budget'; readonly tokens: number }
  /** As much as the model sees fit, at an effort; undefined = the model's own default. */
  | { readonly kind: 'adaptive'; readonly effort: Effort | undefined }

/**
 * How much effort goes into thinking. What each stands for in tokens, and between wires, is in `effort.ts`.
 */
export type Effort = 'low' | 'medium' | 'high' | 'xhigh' | 'max'

/** What one side said, in one go. */
export interface Turn {
  readonly role: 'user' | 'assistant'
  readonly parts: readonly Part[]
}

/** A piece of a turn. */
export type Part = TextPart | MediaPart | ThinkingPart | ToolCallPart | ToolResultPart | OpaquePart

/** A mark up to which the prompt may be cached. */
export interface Cache {
  readonly ttl: '5m' | '1h' | undefined
}

/** Text. */
export interface TextPart {
  readonly kind: 'text'
  readonly text: string
  readonly cache?: Cache
}

/** A picture, a document, a recording. */
export interface MediaPart {
  readonly kind: 'media'
  readonly source: MediaSource
  /** A document's name, where one is given. */
  readonly name?: string
  /** How closely a picture is to be looked at, in words of chat and responses; absent = as the model sees fit. */
  readonly detail?: string
  readonly cache?: Cache
}

/** Where media are: in the request itself, or somewhere to be fetched from. */
export type MediaSource =
  /** `data` is base64; the type is as given, or `application/octet-stream` where nobody knows it. */
  | { readonly kind: 'inline'; readonly mediaType: string; readonly data: string }
  /** A family such as `image/*` where only that is known; undefined where nothing is. */
  | { readonly kind: 'url'; readonly url: string; readonly mediaType: string | undefined }

/** What the model thought before it spoke. */
export interface ThinkingPart {
  readonly kind: 'thinking'
  readonly text: string
  readonly proof?: Proof
}

/** A call of one of the caller's tools. */
export interface ToolCallPart {
  readonly kind: 'tool-call'
  readonly id: string
  readonly name: string
  /** The JSON text that the model wrote; empty means `{}`. */
  readonly input: string
  readonly cache?: Cache
  readonly proof?: Proof
}

/** What a tool answered. */
export interface ToolResultPart {
  readonly kind: 'tool-result'
  readonly callId: string
  readonly parts: readonly (TextPart | MediaPart | OpaquePart)[]
  readonly isError: boolean
  readonly cache?: Cache
}

/** What only one wire knows: its own encoder writes it back, others leave it out and say so. */
export interface OpaquePart {
  readonly kind: 'opaque'
  readonly protocol: ConversionProtocol
  readonly value: unknown
}

/**
 * What a provider wants back untouched to believe that a part is its own; only its own protocol's encoder
 * uses it.
 */
export interface Proof {
  readonly protocol: ConversionProtocol
  readonly value: string
}

/** The wires that a conversation can be read from and written to. */
export type ConversionProtocol = 'chat' | 'messages' | 'responses'

/** A tool that the caller offers. */
export interface Tool {
  readonly name: string
  readonly description: string | undefined
  /** JSON schema: the very text of an object, as it came; undefined for a tool without parameters. */
  readonly schema: string | undefined
  readonly strict: boolean | undefined
  readonly cache?: Cache
  /** What the tool is to the client, where that is not a function of this name. */
  readonly form?: ToolForm
}

/**
 * A tool of the client's wire that goes by as a function: calls of it must be turned back into what the client
 * knows.
 */
export interface ToolForm {
  /** `custom` takes plain text, the others what their wire says; `function` is one in a namespace. */
  readonly type: 'function' | 'custom' | 'local_shell' | 'shell' | 'apply_patch' | 'tool_search'
  /** Its name there. */
  readonly name: string
  readonly namespace?: string
}

/** Which tools must, may or must not be called. */
export type ToolChoice =
  | { readonly kind: 'auto' | 'any' | 'none' }
  | { readonly kind: 'tool'; readonly name: string }
