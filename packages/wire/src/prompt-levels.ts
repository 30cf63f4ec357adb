import type { Node, ScannedObject } from './json/scanned-object.ts'
import type { MediaTokens } from './prompt-tokens.ts'

/** Why the texts of a member are not part of the prompt, or are counted elsewhere. */
type Reason =
  /** Controls how the reply is sampled and how long it may be. */
  | 'sampling'
  /** Controls how the request is served: model, streaming, storage, tier. */
  | 'service'
  /** Refers to something that is stored or was made elsewhere; stored content is counted separately. */
  | 'id'
  /** For the records of the client or the provider. */
  | 'metadata'
  /** One word that names the form of an object. */
  | 'kind'
  /** Proves that a model wrote the text next to it. */
  | 'signature'
  /** Copied from a response; the provider's rules say that the model does not read it again. */
  | 'of the answer'

/**
 * How the value of a known member is read: as texts, JSON or encrypted text, or by the level of that name.
 */
export type Reading = string

/** Members of objects of one kind. A member in neither list counts as JSON, including its name. */
export interface Level {
  readonly notPrompt: Readonly<Record<string, Reason>>
  /** Members whose names are part of the protocol and are not counted. */
  readonly read: Readonly<Record<string, Reading>>
  /** Finds the media in an object of this kind. */
  readonly media?: FindMedia
}

/** Media of a part: how their tokens are estimated, and their data if they are in the request. */
export interface FoundMedia {
  readonly tokens: MediaTokens
  readonly data: Node | undefined
  /** Media type and name, if stated. */
  readonly type?: string | undefined
  readonly name?: string | undefined
}

/** Finds the media of a part; undefined for an object without media. */
export type FindMedia = (scan: ScannedObject, part: Node) => FoundMedia | undefined

/**
 * Describes where the prompt is in a kind of request: it consists of all texts, including those of unknown
 * members, except for members that a level lists in `notPrompt`. `request` is the top level.
 */
export interface PromptLevels {
  readonly levels: Readonly<Record<string, Level>> & { readonly request: Level }
  /**
   * The member with the turns. It is read last, because it grows at its end, and the count of its beginning
   * can be reused.
   */
  readonly turns: string
  /** Returns the preferred spelling of a name, for dialects with several. */
  readonly spelled?: (name: string) => string
  /** Whether numbers are token ids. */
  readonly hasTokenIds?: true
  /** Whether the turns are messages, each of which adds tokens of markup. */
  readonly isFramed?: true
}

/** Members that tell OpenAI's endpoints how to serve a request. */
export const SERVICE_OF_OPENAI = {
  model: 'service',
  stream: 'service',
  stream_options: 'service',
  store: 'service',
  service_tier: 'service',
  parallel_tool_calls: 'service',
  prompt_cache_key: 'metadata',
  prompt_cache_retention: 'service',
  prompt_cache_options: 'service',
  metadata: 'metadata',
  user: 'metadata',
  safety_identifier: 'metadata',
} as const
