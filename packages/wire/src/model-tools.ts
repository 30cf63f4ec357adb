import { asRecord } from './json/record.ts'

/** Members of tools that name other models, such as `model` and `analysis_models`. */
const NAMES_MODELS = /models?$/iu
/** Tools of Anthropic that ask another model, even if a request names none. */
const ASKS_MODELS = /^advisor(?:_|$)/
/**
 * Tools that OpenRouter runs and that may ask other language models, even if a request names none: all except those that
 * are documented not to, because a list of the others would miss new ones. https://openrouter.ai/tools
 */
const OF_OPENROUTER = /^openrouter:(?!(?:apply_patch|datetime|image_generation|shell|web_fetch|web_search)$)/
/** Types of tools that clients run, in which the names of members have no effect on the provider. */
const OF_CLIENTS: ReadonlySet<unknown> = new Set([undefined, null, 'function', 'custom', 'namespace'])
/** Maximum depth at which a member that names a model is looked for. */
const MAX_LEVELS = 8

/**
 * Whether the provider asks another model when it runs a tool. Such a tool is invalid without its model.
 * `docs/api.md: Other models and prices`.
 */
export function carriesModel(tool: Readonly<Record<string, unknown>>): boolean {
  const { type } = tool
  // The model of images is optional, and only the name is left out.
  if (OF_CLIENTS.has(type) || type === 'image_generation') return false
  const asks = typeof type === 'string' && (ASKS_MODELS.test(type) || OF_OPENROUTER.test(type))
  return asks || namesModel(tool, MAX_LEVELS)
}

function namesModel(value: unknown, levels: number): boolean {
  if (Array.isArray(value)) return levels > 0 && value.some((one) => namesModel(one, levels - 1))
  const fields = asRecord(value)
  if (!fields) return false
  return Object.entries(fields).some(
    ([name, own]) => NAMES_MODELS.test(name) || (levels > 0 && namesModel(own, levels - 1)),
  )
}
