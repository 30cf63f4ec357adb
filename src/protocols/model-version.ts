/** A version as a model's name states it; a minor version that is not named is 0. */
export interface ModelVersion {
  readonly major: number
  readonly minor: number
}

/**
 * A version is one or two digits, so that dates (`-20250514`) and context sizes are not taken for one. The
 * first form has the version before the tier (`claude-3-5-sonnet`), the second behind it (`claude-opus-4-7`,
 * `claude-opus-4.7`); the third is a tier alone, as deployments are named.
 */
const CLAUDE = [
  /claude-(\d{1,2})(?:[-.](\d{1,2}))?(?![\d.])/i,
  /claude-[a-z]+-(\d{1,2})(?:[-.](\d{1,2}))?(?![\d.])/i,
  /(?:^|[^a-z])(?:opus|sonnet|haiku)-(\d{1,2})(?:[-.](\d{1,2}))?(?![\d.])/i,
] as const

/** Azure writes 3.5 without its point. */
const GPT = [/(?:^|[^a-z])gpt-(3)\.?(5)(?!\d)/i, /(?:^|[^a-z])gpt-(\d{1,2})(?:\.(\d{1,2}))?(?!\d)/i] as const

const GEMINI = /(?:^|[^a-z])gemini-(\d{1,2})(?:\.(\d{1,2}))?(?!\d)/i

/**
 * The version of a Claude model, whatever stands before and behind its name; undefined where the name states
 * none.
 */
export function claudeVersion(model: string): ModelVersion | undefined {
  return versionIn(model, CLAUDE)
}

/**
 * The version of a GPT model (`gpt-5.2-codex` is 5.2, `gpt-4o` is 4.0); undefined where the name states none.
 */
export function gptVersion(model: string): ModelVersion | undefined {
  return versionIn(model, GPT)
}

/** The version of a Gemini model; undefined where the name states none. */
export function geminiVersion(model: string): ModelVersion | undefined {
  return versionIn(model, [GEMINI])
}

/** Whether a version is this one or a later one. */
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
