import type { EffortName } from './thinking.ts'

/** Ways to accept settings for thinking: an effort (`adaptive`), a budget of tokens, or none. */
export const THINKING_FORMS = ['adaptive', 'budget', 'none'] as const

/** How a model accepts settings for thinking. */
export type ThinkingForm = (typeof THINKING_FORMS)[number]

/** Capabilities of a model that the operator has configured. */
export interface DeclaredCapabilities {
  /** Whether the model accepts `temperature`, `top_p` and `top_k`. */
  readonly sampling?: boolean | undefined
  readonly thinking?: ThinkingForm | undefined
  /** Whether earlier chat messages may contain `reasoning_content`. */
  readonly takes_thoughts?: boolean | undefined
  /** Whether content may contain `prompt_cache_breakpoint` (only OpenAI). */
  readonly cache_breakpoints?: boolean | undefined
}

/** Settings that a model accepts; `docs/api.md: Parameters by model`. */
export interface Capabilities {
  /** Whether the gateway knows the model. */
  readonly isKnown: boolean
  /**
   * Which sampling settings the model accepts. `no-top-p-beside-temperature` means that `top_p` is refused if
   * `temperature` is set.
   */
  readonly sampling: 'all' | 'no-top-p-beside-temperature' | 'none'
  /** Whether the model accepts presence and frequency penalties. */
  readonly takesPenalties: boolean
  readonly takesStop: boolean
  /** Whether the model reports log probabilities: `without-thinking` if it refuses them beside thinking. */
  readonly logprobs: 'all' | 'without-thinking' | 'none'
  readonly thinking: ThinkingForm
  /** Whether thinking cannot be switched off. */
  readonly alwaysThinks: boolean
  /**
   * Whether thoughts arrive without their words unless a request has `thinking.display: summarized`: from Claude Opus
   * 4.7 on, Fable and Mythos included, `omitted` is the default. Sources:
   * https://platform.claude.com/docs/en/build-with-claude/adaptive-thinking,
   * https://github.com/docker/docker-agent/pull/3415.
   */
  readonly hidesThoughts: boolean
  /** Whether a conversation may end with an assistant's turn, which the model continues. */
  readonly takesPrefill: boolean
  /** Efforts that the model accepts in chat requests, ascending; undefined if unknown. */
  readonly efforts: readonly EffortName[] | undefined
  /** Whether the model refuses chat requests with tools unless they set the effort to `none`. */
  readonly toolsNeedNoEffort: boolean
  /** Whether the model can be forced to write JSON that follows a schema. */
  readonly takesSchema: boolean
  /**
   * Whether a chat message with tool calls must contain `reasoning_content`, even an empty one. Some
   * reasoning models refuse the conversation otherwise.
   */
  readonly requiresThoughts: boolean
  /** Whether earlier chat messages may contain `reasoning_content`. Many servers refuse the field. */
  readonly takesThoughts: boolean
  /** Whether content may contain `prompt_cache_breakpoint` (only OpenAI). */
  readonly takesBreakpoints: boolean
  /** Whether the model is OpenAI's, whose servers know all of OpenAI's fields. */
  readonly isOpenAi: boolean
  /** Name of the chat field for the maximum of output tokens. */
  readonly maximumField: 'max_tokens' | 'max_completion_tokens'
  readonly gemini: GeminiCapabilities
  readonly converse: ConverseCapabilities
}

/** Differences between models behind the Gemini API. */
export interface GeminiCapabilities {
  /** Thinking levels that the model accepts, ascending; undefined if it takes a budget instead. */
  readonly levels: readonly EffortName[] | undefined
  /** Minimum and maximum of a thinking budget, in tokens. */
  readonly budgets: readonly [min: number, max: number]
  /** Whether thinking can be switched off with a budget of 0. */
  readonly canStopThinking: boolean
  /** Whether the model refuses earlier tool calls without their signatures. */
  readonly requiresSignatures: boolean
  /** Whether tool results may contain media, and JSON output can be requested together with tools. */
  readonly mixesTools: boolean
  /** Whether the model accepts a system instruction. */
  readonly takesSystem: boolean
}

/** A model's name, and the versions that it contains, by model family. */
interface Name {
  readonly text: string
  readonly claude: ModelVersion | undefined
  readonly gpt: ModelVersion | undefined
  readonly gemini: ModelVersion | undefined
  readonly kimi: ModelVersion | undefined
}

/** The capabilities that `TABLE` can set. */
type TableCapabilities = Omit<
  Capabilities,
  'converse' | 'isKnown' | 'takesThoughts' | 'takesBreakpoints' | 'isOpenAi'
>

type Row = readonly [covers: (name: Name) => boolean, capabilities: Partial<TableCapabilities>]

/** Capabilities that are assumed for unknown models: every setting is sent. */
const UNKNOWN: TableCapabilities = {
  sampling: 'all',
  takesPenalties: true,
  takesStop: true,
  logprobs: 'all',
  thinking: 'budget',
  alwaysThinks: false,
  hidesThoughts: false,
  takesPrefill: true,
  efforts: undefined,
  toolsNeedNoEffort: false,
  takesSchema: true,
  requiresThoughts: false,
  maximumField: 'max_tokens',
  gemini: {
    levels: undefined,
    budgets: [1, 24_576],
    canStopThinking: true,
    requiresSignatures: true,
    mixesTools: true,
    takesSystem: true,
  },
}

/** Capabilities of Claude models since 4.7. */
const NEW_CLAUDE = {
  sampling: 'none',
  thinking: 'adaptive',
  hidesThoughts: true,
  takesPrefill: false,
} as const
const REASONING = {
  sampling: 'none',
  takesPenalties: false,
  takesStop: false,
  logprobs: 'none',
  maximumField: 'max_completion_tokens',
} as const
/** Reasoning models that can answer without thinking, and report log probabilities then. */
const OPTIONAL_REASONING = { ...REASONING, logprobs: 'without-thinking' } as const
const TO_HIGH = ['low', 'medium', 'high'] as const
const TO_XHIGH = [...TO_HIGH, 'xhigh'] as const
const TO_MAX = [...TO_XHIGH, 'max'] as const

/** Capabilities of Gemini models before version 3 that differ from newer ones. */
const OLD_GEMINI = { ...UNKNOWN.gemini, requiresSignatures: false, mixesTools: false }
/**
 * Capabilities of Gemini models since 2.5, which refuse penalties. Their thinking settings are in the rows of
 * `TABLE`.
 */
const NEW_GEMINI = { takesPenalties: false } as const
const levels = (...names: readonly EffortName[]): Partial<Capabilities> => ({
  ...NEW_GEMINI,
  efforts: TO_HIGH,
  gemini: { ...UNKNOWN.gemini, levels: names, canStopThinking: false },
})

/**
 * Capabilities by model name; the first row that matches is used. A row applies from a version on, so that a
 * new model has the capabilities of the version before it.
 */
const TABLE: readonly Row[] = [
  [
    ({ text, claude }) =>
      /claude-(?:fable|mythos)/i.test(text) || (isAtLeast(claude, 5, 5) && !/haiku/i.test(text)),
    { ...NEW_CLAUDE, alwaysThinks: true },
  ],
  [({ claude }) => isAtLeast(claude, 4, 7), NEW_CLAUDE],
  [({ claude }) => isAtLeast(claude, 4, 6), { sampling: 'no-top-p-beside-temperature', takesPrefill: false }],
  [({ claude }) => isAtLeast(claude, 4, 5), { sampling: 'no-top-p-beside-temperature' }],
  [({ claude }) => isAtLeast(claude, 4, 1), { sampling: 'no-top-p-beside-temperature', takesSchema: false }],
  [({ claude }) => isAtLeast(claude, 3, 7), { takesSchema: false }],
  [({ claude }) => isAtLeast(claude, 0), { thinking: 'none', takesSchema: false }],

  [
    ({ text, gpt }) =>
      /chatgpt-/i.test(text) || (gpt !== undefined && (/chat/i.test(text) || !isAtLeast(gpt, 5))),
    { thinking: 'none' },
  ],
  [({ text }) => /(?:^|[^a-z\d])o1-(?:mini|preview)/i.test(text), { ...REASONING, thinking: 'none' }],
  [
    ({ text }) => /(?:^|[^a-z\d])o1(?![\w.])/i.test(text),
    { ...REASONING, takesStop: true, efforts: TO_HIGH },
  ],
  [({ text }) => /(?:^|[^a-z\d])o\d{1,2}(?![\w.])/i.test(text), { ...REASONING, efforts: TO_HIGH }],
  [({ text, gpt }) => isAtLeast(gpt, 5, 1) && /-codex-max/i.test(text), { ...REASONING, efforts: TO_XHIGH }],
  [({ text, gpt }) => isAtLeast(gpt, 5, 2) && /-codex/i.test(text), { ...REASONING, efforts: TO_XHIGH }],
  [({ text, gpt }) => isAtLeast(gpt, 5) && /-codex/i.test(text), { ...REASONING, efforts: TO_HIGH }],
  [
    ({ text, gpt }) => isAtLeast(gpt, 5, 2) && /-pro\b/i.test(text),
    { ...REASONING, efforts: ['medium', 'high', 'xhigh'] },
  ],
  [({ text, gpt }) => isAtLeast(gpt, 5) && /-pro\b/i.test(text), { ...REASONING, efforts: ['high'] }],
  // If a name has a vendor's prefix (`openai/gpt-5.6`), the model is behind a router, which has its own rules
  // for the model.
  [
    ({ text, gpt }) => isAtLeast(gpt, 5, 6) && !text.includes('/'),
    { ...OPTIONAL_REASONING, efforts: ['none', ...TO_MAX], toolsNeedNoEffort: true },
  ],
  [({ gpt }) => isAtLeast(gpt, 5, 6), { ...OPTIONAL_REASONING, efforts: ['none', ...TO_MAX] }],
  [({ gpt }) => isAtLeast(gpt, 5, 2), { ...OPTIONAL_REASONING, efforts: ['none', ...TO_XHIGH] }],
  [({ gpt }) => isAtLeast(gpt, 5, 1), { ...OPTIONAL_REASONING, efforts: ['none', ...TO_HIGH] }],
  [({ gpt }) => isAtLeast(gpt, 5), { ...REASONING, efforts: ['minimal', ...TO_HIGH] }],

  [
    ({ text, gemini }) => isAtLeast(gemini, 3) && /flash-lite/i.test(text) && /image/i.test(text),
    levels('minimal', 'high'),
  ],
  [({ text, gemini }) => isAtLeast(gemini, 3) && /flash-lite/i.test(text), levels('minimal', ...TO_HIGH)],
  [
    ({ text, gemini }) => isAtLeast(gemini, 3) && !isAtLeast(gemini, 3, 1) && /-pro\b/i.test(text),
    levels('low', 'high'),
  ],
  [
    ({ text, gemini }) => isAtLeast(gemini, 3) && !isAtLeast(gemini, 3, 1) && /-flash\b/i.test(text),
    levels('minimal', ...TO_HIGH),
  ],
  [({ gemini }) => isAtLeast(gemini, 3), levels(...TO_HIGH)],
  [
    ({ text, gemini }) => isAtLeast(gemini, 2, 5) && /-pro\b/i.test(text),
    {
      ...NEW_GEMINI,
      efforts: TO_HIGH,
      gemini: { ...OLD_GEMINI, budgets: [128, 32_768], canStopThinking: false },
    },
  ],
  [
    ({ text, gemini }) => isAtLeast(gemini, 2, 5) && /flash-lite/i.test(text),
    { ...NEW_GEMINI, efforts: ['none', ...TO_HIGH], gemini: { ...OLD_GEMINI, budgets: [512, 24_576] } },
  ],
  [
    ({ gemini }) => isAtLeast(gemini, 2, 5),
    { ...NEW_GEMINI, efforts: ['none', ...TO_HIGH], gemini: OLD_GEMINI },
  ],
  [
    ({ text, gemini }) => gemini !== undefined && !/thinking/i.test(text),
    { thinking: 'none', gemini: OLD_GEMINI },
  ],
  // The vendor's own servers accept only certain sampling settings. Routers, whose names of models contain a
  // slash, accept more.
  [
    ({ text, kimi }) => isAtLeast(kimi, 2, 5) && !text.includes('/'),
    { sampling: 'none', takesPenalties: false, requiresThoughts: true },
  ],
  [({ text }) => /(?:^|[^a-z])(?:deepseek|kimi)/i.test(text), { requiresThoughts: true }],
  [({ text }) => /(?:^|[^a-z])gemma/i.test(text), { gemini: { ...OLD_GEMINI, takesSystem: false } }],
]

/**
 * Finds a model's capabilities by the upstream's name for it, or otherwise by the client's. Capabilities
 * configured by the operator (`stated`) override both.
 */
export function capabilitiesOf(
  upstreamName: string,
  requestedName: string,
  stated: DeclaredCapabilities = NOTHING_STATED,
): Capabilities {
  let known = found.get(stated)
  if (!known) found.set(stated, (known = new Map()))
  const names = `${upstreamName}\0${requestedName}`
  let capabilities = known.get(names)
  if (!capabilities) {
    if (known.size >= MAX_FOUND) known.clear()
    known.set(names, (capabilities = findCapabilities(upstreamName, requestedName, stated)))
  }
  return capabilities
}

const NOTHING_STATED: DeclaredCapabilities = {}
/**
 * Cache of capabilities, by what the operator has configured and by both names of the model. Without it,
 * every conversion would try some forty patterns.
 */
const found = new WeakMap<DeclaredCapabilities, Map<string, Capabilities>>()
/** Maximum number of cached results. It is limited because clients choose the names of models. */
const MAX_FOUND = 200

function findCapabilities(
  upstreamName: string,
  requestedName: string,
  stated: DeclaredCapabilities,
): Capabilities {
  const own = rowOf(upstreamName)
  const named = own ?? (requestedName === upstreamName ? undefined : rowOf(requestedName))
  const describing = own ? upstreamName : `${upstreamName} ${requestedName}`
  const converse = converseCapabilitiesOf(upstreamName, own ? upstreamName : requestedName)
  const isKnown = named !== undefined || stated.thinking !== undefined || /claude/i.test(upstreamName)
  const takesThoughts = stated.takes_thoughts ?? THINKS_ALOUD.test(describing)
  const known = {
    ...UNKNOWN,
    ...named,
    ...(!takesThoughts && { requiresThoughts: false }),
    converse,
    isKnown,
    takesThoughts,
    takesBreakpoints: stated.cache_breakpoints ?? isAtLeast(gptVersion(describing), 5, 6),
    isOpenAi: isOpenAiModel(describing),
  }
  const accepted = {
    ...known,
    sampling: stated.sampling === undefined ? known.sampling : stated.sampling ? 'all' : 'none',
    takesPenalties: stated.sampling ?? known.takesPenalties,
    // GPT models take stop sequences again since 5.5.
    takesStop: stated.sampling || known.takesStop || isAtLeast(gptVersion(describing), 5, 5),
    logprobs: stated.sampling ? 'all' : known.logprobs,
  } as const
  if (stated.thinking === undefined) return accepted
  const { gemini } = known
  const statedLevels = stated.thinking === 'adaptive' ? (gemini.levels ?? TO_HIGH) : undefined
  return {
    ...accepted,
    gemini: { ...gemini, levels: statedLevels },
    thinking: stated.thinking,
    alwaysThinks: known.alwaysThinks && stated.thinking === 'adaptive',
    toolsNeedNoEffort: known.toolsNeedNoEffort && stated.thinking === 'none',
  }
}

/** Names of models that accept their earlier thoughts as `reasoning_content` in chat messages. */
const THINKS_ALOUD = /(?:^|[^a-z])(?:deepseek|qwen|qwq|kimi|glm|minimax)/i

function isOpenAiModel(name: string): boolean {
  return gptVersion(name) !== undefined || /chatgpt-|(?:^|[^a-z\d])o\d{1,2}(?![\w.])/i.test(name)
}

function rowOf(text: string): Partial<TableCapabilities> | undefined {
  const name = {
    text,
    claude: claudeVersion(text),
    gpt: gptVersion(text),
    gemini: geminiVersion(text),
    kimi: kimiVersion(text),
  }
  return TABLE.find(([covers]) => covers(name))?.[1]
}

function isAtLeast(version: ModelVersion | undefined, major: number, minor?: number): boolean {
  return version !== undefined && isSince(version, major, minor)
}

/**
 * Differences between models behind Bedrock's Converse API, which refuses a whole request because of one
 * member that the model does not support; `docs/api.md: Parameters by model`.
 */
export interface ConverseCapabilities {
  /** How thinking is switched on: as for Claude, as for Nova, or by an effort; undefined if not known. */
  readonly thinking: 'claude' | 'nova' | 'effort' | undefined
  /** The member in which the model accepts top-k; undefined if it is not known. */
  readonly topK: 'top_k' | 'k' | 'inferenceConfig' | undefined
  /** The strictest tool choice that it supports: a named tool, any tool, or only the model's own decision. */
  readonly choices: 'tool' | 'any' | 'auto'
  /** Where the model accepts cache points. Nova accepts them only after texts. */
  readonly cache: 'everywhere' | 'texts' | 'nowhere'
  /** Whether a cache point may last for an hour. */
  readonly cachesForAnHour: boolean
  /** How the model can be forced to follow a schema for its text. */
  readonly schema: 'format' | 'tool' | 'instruction'
  /** Whether a tool can be declared as `strict`, so that the model must follow its schema. */
  readonly takesStrict: boolean
  /** Whether a tool result can be marked as failed. */
  readonly statesFailures: boolean
  /** Whether a turn may contain both texts and tool calls, or both texts and tool results. */
  readonly mixesTools: boolean
  readonly takesSystem: boolean
}

type ConverseRow = readonly [covers: (name: string) => boolean, capabilities: Partial<ConverseCapabilities>]

/** Capabilities of unknown models: everything that most models accept, and nothing that only a few accept. */
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
const MISTRAL = { topK: 'top_k' } as const
const named =
  (pattern: RegExp): ConverseRow[0] =>
  (name) =>
    pattern.test(name)

/** Capabilities by model name; the first row that matches is used. */
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

/** Finds a model's capabilities on Converse by the upstream's name for it, or otherwise by the client's. */
function converseCapabilitiesOf(upstreamName: string, requestedName: string): ConverseCapabilities {
  return { ...UNKNOWN_ON_CONVERSE, ...(converseRowOf(upstreamName) ?? converseRowOf(requestedName)) }
}

function converseRowOf(name: string): Partial<ConverseCapabilities> | undefined {
  return CONVERSE_TABLE.find(([covers]) => covers(name))?.[1]
}

export function isClaude(name: string): boolean {
  return /claude/i.test(name) || claudeVersion(name) !== undefined
}

/** Version in the name of a model. A missing minor version is 0. */
interface ModelVersion {
  readonly major: number
  readonly minor: number
}

/**
 * Patterns of Claude model names: the version before the tier (`claude-3-5-sonnet`), after it
 * (`claude-opus-4-7`, `claude-opus-4.7`), or only a tier, as in names of deployments. Numbers have at most
 * two digits, so that dates (`-20250514`) and context sizes do not match.
 */
const CLAUDE_NAMES = [
  /claude-(\d{1,2})(?:[-.](\d{1,2}))?(?![\d.])/i,
  /claude-[a-z]+-(\d{1,2})(?:[-.](\d{1,2}))?(?![\d.])/i,
  /(?:^|[^a-z])(?:opus|sonnet|haiku)-(\d{1,2})(?:[-.](\d{1,2}))?(?![\d.])/i,
] as const

/** Patterns of the names of GPT models. Azure writes 3.5 without the point. */
const GPT_NAMES = [
  /(?:^|[^a-z])gpt-(3)\.?(5)(?!\d)/i,
  /(?:^|[^a-z])gpt-(\d{1,2})(?:\.(\d{1,2}))?(?!\d)/i,
] as const

const GEMINI_NAMES = /(?:^|[^a-z])gemini-(\d{1,2})(?:\.(\d{1,2}))?(?!\d)/i

const KIMI_NAMES = /(?:^|[^a-z])kimi-k(\d{1,2})(?:\.(\d{1,2}))?(?!\d)/i

/** Finds the version in the name of a Claude model, with any prefix and suffix; undefined for other names. */
export function claudeVersion(model: string): ModelVersion | undefined {
  return versionIn(model, CLAUDE_NAMES)
}

/** Finds the version of a GPT model (`gpt-5.2-codex` is 5.2, `gpt-4o` is 4.0); undefined if there is none. */
export function gptVersion(model: string): ModelVersion | undefined {
  return versionIn(model, GPT_NAMES)
}

/** Finds the version in the name of a Gemini model; undefined for other names. */
export function geminiVersion(model: string): ModelVersion | undefined {
  return versionIn(model, [GEMINI_NAMES])
}

/** Finds the version in the name of a Kimi model; undefined for other names. */
export function kimiVersion(model: string): ModelVersion | undefined {
  return versionIn(model, [KIMI_NAMES])
}

/** Whether a version is the given one or a later one. */
export function isSince({ major, minor }: ModelVersion, sinceMajor: number, sinceMinor = 0): boolean {
  return major > sinceMajor || (major === sinceMajor && minor >= sinceMinor)
}

function versionIn(model: string, patterns: readonly RegExp[]): ModelVersion | undefined {
  for (const pattern of patterns) {
    const found = pattern.exec(model)
    if (found) return { major: Number(found[1]), minor: Number(found[2] ?? 0) }
  }
  return undefined
}
