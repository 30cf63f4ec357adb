import { claudeVersion, isSince } from './model-version.ts'

/**
 * Differences between models behind Bedrock's Converse API, which refuses a whole request for one member that
 * its model does not support; `docs/api.md: Parameters by model`.
 */
export interface ConverseCapabilities {
  /** Vendor whose members switch thinking on; undefined if none are known. */
  readonly thinking: 'claude' | 'nova' | 'effort' | undefined
  /** The model-specific member for top-k; undefined if none is known. */
  readonly topK: 'top_k' | 'k' | 'inferenceConfig' | undefined
  /** The strongest supported tool choice: a named tool, any tool, or only the model's own choice. */
  readonly choices: 'tool' | 'any' | 'auto'
  /** Where cache points are accepted; Nova accepts them only after texts. */
  readonly cache: 'everywhere' | 'texts' | 'nowhere'
  /** Whether a cache point may last for an hour. */
  readonly cachesForAnHour: boolean
  /** How the model can be made to follow a schema for its text. */
  readonly schema: 'format' | 'tool' | 'instruction'
  /** Whether a tool's schema can be enforced. */
  readonly takesStrict: boolean
  /** Whether a tool result can be marked as failed. */
  readonly statesFailures: boolean
  /** Whether a turn may contain both texts and calls, or texts and results. */
  readonly mixesTools: boolean
  readonly takesSystem: boolean
  /** Whether call ids must consist of nine letters and digits. */
  readonly hasShortIds: boolean
}

type ConverseRow = readonly [covers: (name: string) => boolean, says: Partial<ConverseCapabilities>]

/** Capabilities of unknown models: what most models accept, without what only a few do. */
const UNKNOWN_ON_CONVERSE: ConverseCapabilities = {
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
  (pattern: RegExp): ConverseRow[0] =>
  (name) =>
    pattern.test(name)

/** The first row that matches a name counts. */
const CONVERSE_TABLE: readonly ConverseRow[] = [
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

/** Finds a model's capabilities by the upstream's name for it, or else by the client's. */
export function converseCapabilitiesOf(upstreamName: string, askedName: string): ConverseCapabilities {
  return { ...UNKNOWN_ON_CONVERSE, ...(converseRowOf(upstreamName) ?? converseRowOf(askedName)) }
}

function converseRowOf(name: string): Partial<ConverseCapabilities> | undefined {
  return CONVERSE_TABLE.find(([covers]) => covers(name))?.[1]
}

function isClaude(name: string): boolean {
  return /claude/i.test(name) || claudeVersion(name) !== undefined
}
