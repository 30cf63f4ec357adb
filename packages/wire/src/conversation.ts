import type { ConversionProtocol } from './protocols.ts'

/**
 * A request in a form that does not depend on the protocol. It contains what at least two protocols can
 * express. Decoders create it, the gateway's rules change it, encoders write it. Only converted calls use it;
 * calls that are not converted keep their bytes.
 */
export interface Conversation {
  readonly model: string
  readonly stream: boolean
  /** System and developer texts, in order. */
  readonly system: readonly SystemText[]
  readonly turns: readonly Turn[]
  readonly tools: readonly Tool[]
  /** Whether the model must call a tool, and which; undefined for the protocol's default. */
  readonly toolChoice: ToolChoice | undefined
  /** Whether several tools may be called at once; undefined for the protocol's default. */
  readonly parallelTools: boolean | undefined
  readonly maxTokens: number | undefined
  readonly temperature: number | undefined
  readonly topP: number | undefined
  readonly topK: number | undefined
  /** Integer that makes replies repeatable. Only chat and Gemini have it. */
  readonly seed: number | undefined
  /** Presence penalty from -2 to 2. Only chat and Gemini have it. */
  readonly presencePenalty: number | undefined
  /** Frequency penalty from -2 to 2. Only chat and Gemini have it. */
  readonly frequencyPenalty: number | undefined
  readonly stop: readonly string[]
  /** How much the model should think; undefined if the request does not state it. */
  readonly thinking: Thinking | undefined
  /** Whether the client asks to see the model's thoughts; absent if it leaves that to the model. */
  readonly showsThoughts?: true
  /** Whether the sampling settings have no effect on a model that thinks as requested. */
  readonly thinkingReplacesSampling?: true
  /** Required format of the reply's text; undefined for any format. */
  readonly outputFormat: OutputFormat | undefined
  /** Web search by the provider; undefined if not requested. */
  readonly webSearch: WebSearch | undefined
  /**
   * Whether the client requested usage at the end of a stream. Only used for protocols that report it only on
   * request.
   */
  readonly includeUsage: boolean
  /** Number of replies that the client requests; absent for one reply. */
  readonly choices?: RequestedChoices
  /** Request for log probabilities of the reply's tokens; absent if not requested. */
  readonly logprobs?: RequestedLogprobs
  /**
   * The id of the client's user, from responses and messages requests. It is not set for chat requests:
   * `docs/api.md: Chat completions`, fields without an equivalent.
   */
  readonly endUser?: EndUser
  /** Whether the request demands the provider's standard tier, in responses and messages requests. */
  readonly isStandardTier?: true
  /**
   * Whether the request to the upstream may name any service tier, even one that is not part of the
   * upstream's protocol.
   */
  readonly takesAnyTier?: true
  /**
   * Whether the content of each message is written as a list, even if it is a single text. This is done for
   * upstreams that accept cache marks: a mark needs a list, and the bytes of a message must stay the same
   * when the mark moves to a later message.
   */
  readonly listsContent?: true
  /** Fields that chat and responses requests have in common; undefined if the request has none. */
  readonly shared?: SharedFields
  /** Members of the request that the response repeats in some protocols, as JSON text. */
  readonly repeated?: RepeatedFields
}

/** Number of alternative replies (choices) that a client requests. */
export interface RequestedChoices {
  /** Number of replies, at least 2. */
  readonly count: number
  /** Name of the client's field for the number. */
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
  /** Name of the client's field for the identifier. */
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

/** The shared fields of a request, with their values as JSON text. */
export type SharedFields = ReadonlyMap<SharedField, string>

/** Members of a request by name, with their values as JSON text. */
export type RepeatedFields = ReadonlyMap<string, string>

/** What the encoder of a response needs from its request. */
export type ReplyContext = Pick<Conversation, 'tools' | 'repeated'>

/** Required format of a reply's text. */
export type OutputFormat =
  /** Any JSON object. */
  { readonly kind: 'json-object' } | OutputSchema

/** JSON that matches a schema. */
export interface OutputSchema {
  readonly kind: 'json-schema'
  /** Text of the schema, which is a JSON object, unchanged. */
  readonly schema: string
  /** Name that the client gave to the schema, in protocols in which schemas have names. */
  readonly name: string | undefined
  readonly description: string | undefined
  /** Whether the provider must enforce the schema; undefined for the protocol's default. */
  readonly strict: boolean | undefined
}

/** A web search that the provider runs, with its limits. */
export interface WebSearch {
  readonly maxUses: number
  /**
   * Whether the client offers the search only as one tool among others. It is then left out unless the
   * upstream is known to support searches.
   */
  readonly isOptional?: true
  /** Whether the model must search. The tool choice is then undefined. */
  readonly isForced?: true
  /** Whether the client displays the pages that were found. */
  readonly listsPages?: true
  /** Approximate location of the user, for the search. */
  readonly location?: SearchLocation
  readonly domains?: SearchDomains
}

/** Domains that a web search is limited to, or may not use; as the client states them. */
export interface SearchDomains {
  readonly allowed_domains?: readonly unknown[]
  readonly blocked_domains?: readonly unknown[]
}

/** Approximate location of the client's user, which a web search may consider. */
export interface SearchLocation {
  readonly city?: string
  readonly country?: string
  readonly region?: string
  readonly timezone?: string
}

/** How much the model should think before it replies. */
export type Thinking =
  /** Thinking is switched off. `effort` is the effort with which the client did so. */
  | { readonly kind: 'off'; readonly effort?: 'none' | 'minimal' }
  /** The model may think with at most this many tokens. */
  | { readonly kind: 'budget'; readonly tokens: number }
  /** The model decides how much to think, guided by `effort`; undefined for the model's default effort. */
  | { readonly kind: 'adaptive'; readonly effort: Effort | undefined }

/**
 * How much the model should think. Each upstream gets it as a number of tokens or by a name in its
 * protocol.
 */
export type Effort = 'low' | 'medium' | 'high' | 'xhigh' | 'max'

/** Consecutive messages of one side: of the user or of the model. */
export interface Turn {
  readonly role: 'user' | 'assistant'
  readonly parts: readonly Part[]
}

/** Part of a turn, such as a text, a thought, an image, a tool call or its result. */
export type Part =
  | TextPart
  | MediaPart
  | ThinkingPart
  | ToolCallPart
  | ToolResultPart
  | SearchPart
  | OpaquePart

/** A cache mark: the prompt up to this point may be cached by the provider. */
export interface CacheMark {
  /**
   * How long the prompt is cached; undefined for the default of the field: 5m for `cache_control`, 30m for
   * `prompt_cache_breakpoint`.
   */
  readonly ttl: CacheLifetime | undefined
  /**
   * The member that contains the cache mark, in the client's request and in the upstream's; absent for
   * `cache_control`.
   */
  readonly field?: 'prompt_cache_breakpoint'
  /** The member with an unknown value, and its known ones: a request in which the mark is kept is refused. */
  readonly invalid?: { readonly path: string; readonly expected: string }
}

/** How long prompts can be cached in the different protocols, ascending. */
export const CACHE_LIFETIMES = ['5m', '30m', '1h', '12h'] as const

/** How long a prompt is cached. */
export type CacheLifetime = (typeof CACHE_LIFETIMES)[number]

/** A system text. `at` is its position if it came after the first turn. */
export interface SystemText extends TextPart {
  readonly at?: PartPosition
}

/**
 * A position before a part of a turn: index of the turn, and index of the part. If the turn does not exist
 * yet, the position before its first part.
 */
export interface PartPosition {
  readonly turn: number
  readonly part: number
}

/** Text of a turn. */
export interface TextPart {
  readonly kind: 'text'
  readonly text: string
  readonly cache?: CacheMark
}

/** An image, a document or an audio recording. */
export interface MediaPart {
  readonly kind: 'media'
  readonly source: MediaSource
  /** Name of a document if the client stated one. */
  readonly name?: string
  /** Resolution at which an image is read, as named in chat and responses; absent for the model's default. */
  readonly detail?: string
  readonly cache?: CacheMark
}

/** Source of media: inline data or a URL. */
export type MediaSource =
  /** `data` is base64. `mediaType` is as stated, or `application/octet-stream` if unknown. */
  | { readonly kind: 'inline'; readonly mediaType: string; readonly data: string }
  /** `mediaType` is complete or only its first part, such as `image/*`; undefined if unknown. */
  | { readonly kind: 'url'; readonly url: string; readonly mediaType: string | undefined }

/** A thought of the model before its reply. */
export interface ThinkingPart {
  readonly kind: 'thinking'
  readonly text: string
  readonly proof?: ProviderSignature
}

/** A call of one of the client's tools. */
export interface ToolCallPart {
  readonly kind: 'tool-call'
  readonly id: string
  readonly name: string
  /** JSON text of the input as the model wrote it; empty means `{}`. */
  readonly input: string
  /** Whether the called tool is a custom tool of a chat client. */
  readonly isCustom?: true
  readonly cache?: CacheMark
  readonly proof?: ProviderSignature
}

/** Result of a tool call. */
export interface ToolResultPart {
  readonly kind: 'tool-result'
  readonly callId: string
  readonly parts: readonly (TextPart | MediaPart | OpaquePart)[]
  readonly isError: boolean
  readonly cache?: CacheMark
}

/**
 * A part that only one protocol has. The encoder of that protocol writes it back unchanged; other encoders
 * leave it out and report it as dropped.
 */
export interface OpaquePart {
  readonly kind: 'opaque'
  readonly protocol: ConversionProtocol
  readonly value: unknown
}

/**
 * A signature by which a provider recognizes a part that its model wrote. Only the encoder of the same
 * protocol writes it.
 */
export interface ProviderSignature {
  readonly protocol: ConversionProtocol
  readonly value: string
  /**
   * What carries the signature in protocols that do not sign the thought itself: the next tool call, or an
   * empty text in place of the thought.
   */
  readonly signs?: 'call' | 'text'
}

/** A tool that the client offers. */
export interface Tool {
  readonly name: string
  readonly description: string | undefined
  /** JSON schema of the tool's input as text, unchanged; undefined for a tool without parameters. */
  readonly schema: string | undefined
  readonly strict: boolean | undefined
  readonly cache?: CacheMark
  /** How the client declared the tool; absent if it declared a function with this name. */
  readonly form?: ClientTool
}

/**
 * How a client declared a tool that the upstream gets as a function. Calls of the function are converted back
 * for the client.
 */
export interface ClientTool {
  /**
   * A `custom` tool takes plain text. A `function` is listed only if it is in a namespace, or has another
   * name at the upstream than at the client.
   */
  readonly type: 'function' | 'custom' | 'local_shell' | 'shell' | 'apply_patch' | 'tool_search'
  /** The client's name of the tool. */
  readonly name: string
  readonly namespace?: string
  /** Definition of a custom tool as in a chat request, for protocols that have custom tools. */
  readonly custom?: CustomToolDefinition
}

export interface CustomToolDefinition {
  readonly description: string | undefined
  /** Grammar that the text must follow; undefined if any text is allowed. */
  readonly grammar: Grammar | undefined
}

/** Grammar of the text for a custom tool. */
export interface Grammar {
  readonly syntax: string
  readonly definition: string
}

/** How the request restricts the use of tools: for example, the model must call one, or a certain one. */
export type ToolChoice =
  | { readonly kind: 'auto' | 'any' | 'none' }
  | { readonly kind: 'tool'; readonly name: string }

/** A web search that a provider ran during its reply, with the members that several protocols can express. */
export interface SearchPart {
  readonly kind: 'search'
  /**
   * Protocol of the provider that ran the search. For messages, the opaque parts before this part contain
   * what the provider needs when the client sends the conversation again.
   */
  readonly protocol: ConversionProtocol
  /** Text that was searched for; empty if the provider does not report it. */
  readonly query: string
  /** Pages that were found; empty if the provider does not report them. */
  readonly pages: readonly SearchResultPage[]
  readonly isFailed: boolean
}

/** Web page that a search found. */
export interface SearchResultPage {
  readonly url: string
  /** Title of the page; empty if the provider does not report it. */
  readonly title: string
}
