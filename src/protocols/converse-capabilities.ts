import { claudeVersion, isSince } from './model-version.ts'

/**
 * Capabilities that differ between models behind Bedrock's Converse API, which refuses a request for the
 * first member that its model lacks; `docs/api.md: Parameters by model`.
 */
export interface ConverseCapabilities {
  /** The members that ask for thinking, by the vendor that named them; undefined where none are known. */
  readonly thinking: 'claude' | 'nova' | 'effort' | undefined
  /** The additional member for top-k; undefined where none is known. */
  readonly topK: 'top_k' | 'k' | 'inferenceConfig' | undefined
  /** Most that can be demanded of calls: a tool by its name, any tool, or nothing. */
  readonly choices: 'tool' | 'any' | 'auto'
  /** Places that take cache points; Nova's are in texts alone. */
  readonly cache: 'everywhere' | 'texts' | 'nowhere'
  /** Whether a cache point may last for an hour. */
  readonly cachesForAnHour: boolean
  /** The way to a text that follows a schema. */
  readonly schema: 'format' | 'tool' | 'instruction'
  /** Whether a tool's schema can be enforced. */
  readonly takesStrict: boolean
  /** Whether results of tools can be stated as failed. */
  readonly statesFailures: boolean
  /** Whether texts and calls, or texts and results, may share a turn. */
  readonly mixesTools: boolean
  readonly takesSystem: boolean
  /** Whether ids of calls must be nine letters and digits. */
  readonly hasShortIds: boolean
}

type Row = readonly [covers: (name: string) => boolean, says: Partial<ConverseCapabilities>]

/** Capabilities of unknown models: settings that most take, and none that only a few do. */
const UNKNOWN: ConverseCapabilities = {
  thinking: undefined,
  topK: undefined,
  choices: 'any',
  cache: 'nowhere',
  cachesForAnHour: false,
  schema: 'format',
  takesStrict: false,
  statesFailures: false,
  mixesTools: true,
  takesSystem: true,
  hasShortIds: false,
}

const CLAUDE = {
  thinking: 'claude',
  topK: 'top_k',
  choices: 'tool',
  cache: 'everywhere',
  schema: 'tool',
  statesFailures: true,
} as const
const NOVA = {
  topK: 'inferenceConfig',
  choices: 'tool',
  cache: 'texts',
  schema: 'tool',
  statesFailures: true,
} as const
const MISTRAL = { topK: 'top_k', hasShortIds: true } as const
const named =
  (pattern: RegExp): Row[0] =>
  (name) =>
    pattern.test(name)

/** The first row that covers a name counts. */
const TABLE: readonly Row[] = [
  [
    (name) => isClaude(name) && isSince(claudeVersion(name) ?? { major: 99, minor: 0 }, 4, 5),
    { ...CLAUDE, cachesForAnHour: true, schema: 'format', takesStrict: true },
  ],
  [isClaude, CLAUDE],
  [named(/\bnova-[2-9]/i), { ...NOVA, thinking: 'nova' }],
  [named(/\bnova-/i), NOVA],
  [named(/\bgpt-oss/i), { thinking: 'effort', takesStrict: true }],
  [
    named(/\b(?:mistral-7b|mixtral)/i),
    { ...MISTRAL, choices: 'auto', schema: 'instruction', takesSystem: false },
  ],
  [named(/\bmistral-(?:small|large)-24\d\d|\bpixtral/i), { ...MISTRAL, schema: 'instruction' }],
  [named(/mistral|magistral|voxtral/i), MISTRAL],
  [named(/\bllama/i), { choices: 'auto', schema: 'instruction', mixesTools: false }],
  [named(/\bcohere\b|\bcommand-/i), { topK: 'k', choices: 'auto', schema: 'instruction' }],
  [named(/\btitan-text/i), { choices: 'auto', schema: 'instruction', takesSystem: false }],
  [named(/\b(?:jamba|palmyra)|deepseek[.-]r1/i), { choices: 'auto', schema: 'instruction' }],
  [named(/\b(?:qwen|deepseek|gemma|minimax|kimi|nemotron|glm)/i), { takesStrict: true }],
]

/** Finds a model's capabilities by the upstream's name for it, else by the client's. */
export function converseCapabilitiesOf(upstreamName: string, askedName: string): ConverseCapabilities {
  return { ...UNKNOWN, ...(rowOf(upstreamName) ?? rowOf(askedName)) }
}

function rowOf(name: string): Partial<ConverseCapabilities> | undefined {
  return TABLE.find(([covers]) => covers(name))?.[1]
}

function isClaude(name: string): boolean {
  return /claude/i.test(name) || claudeVersion(name) !== undefined
}
