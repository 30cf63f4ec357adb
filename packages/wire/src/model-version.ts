/** Version in a model's name. A missing minor version is 0. */
export interface ModelVersion {
  readonly major: number
  readonly minor: number
}

/**
 * Patterns of Claude's names: version before the tier (`claude-3-5-sonnet`), after it (`claude-opus-4-7`,
 * `claude-opus-4.7`), or only a tier, as in names of deployments. At most two digits, so that dates
 * (`-20250514`) and context sizes do not match.
 */
const CLAUDE = [
  /claude-(\d{1,2})(?:[-.](\d{1,2}))?(?![\d.])/i,
  /claude-[a-z]+-(\d{1,2})(?:[-.](\d{1,2}))?(?![\d.])/i,
  /(?:^|[^a-z])(?:opus|sonnet|haiku)-(\d{1,2})(?:[-.](\d{1,2}))?(?![\d.])/i,
] as const

/** Patterns of GPT's names. Azure writes 3.5 without the point. */
const GPT = [/(?:^|[^a-z])gpt-(3)\.?(5)(?!\d)/i, /(?:^|[^a-z])gpt-(\d{1,2})(?:\.(\d{1,2}))?(?!\d)/i] as const

const GEMINI = /(?:^|[^a-z])gemini-(\d{1,2})(?:\.(\d{1,2}))?(?!\d)/i

const KIMI = /(?:^|[^a-z])kimi-k(\d{1,2})(?:\.(\d{1,2}))?(?!\d)/i

/** Finds the version of a Claude model, with any prefix and suffix; undefined if there is none. */
export function claudeVersion(model: string): ModelVersion | undefined {
  return versionIn(model, CLAUDE)
}

/** Finds the version of a GPT model (`gpt-5.2-codex` is 5.2, `gpt-4o` is 4.0); undefined if there is none. */
export function gptVersion(model: string): ModelVersion | undefined {
  return versionIn(model, GPT)
}

/** Finds the version of a Gemini model; undefined if there is none. */
export function geminiVersion(model: string): ModelVersion | undefined {
  return versionIn(model, [GEMINI])
}

/** Finds the version of a Kimi model; undefined if there is none. */
export function kimiVersion(model: string): ModelVersion | undefined {
  return versionIn(model, [KIMI])
}

/** Reports whether a version is the given one or later. */
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
