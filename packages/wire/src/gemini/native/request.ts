import {
  type Check,
  checkEachObject,
  checkMembers,
  isInteger,
  kindName,
  refuse,
  requestSchema,
  text,
} from '../../field-check.ts'
import type { ProviderTools } from '../../tool-use.ts'
import type { Fields } from '../../field.ts'
import { asRecord } from '../../json/record.ts'
import type { Member, ScannedObject } from '../../json/scanned-object.ts'
import { type JsonSchema, withSchema } from '../../with-schema.ts'
import { type PromptBounds, respondsInMedia } from '../../prompt-tokens.ts'
import { checkConfigRules, type ConfigRule, CONVERTED_CHECKS, list, spelled } from '../converted-checks.ts'
import { hasOnlyTexts } from '../plain-contents.ts'
import { mediaOf, NO_MEDIA, promptBound } from './prompt.ts'
import { either, nodeOf, topMember, topValue } from '../spelling.ts'

/** Fields of a request that the gateway reads; all others pass as they came. */
export interface GeminiRequest extends PromptBounds {
  readonly maxTokens: number | undefined
  /** Number of candidates requested. */
  readonly candidateCount: number
  /** Tools that the provider runs; absent if there are none. */
  readonly providerTools?: ProviderTools
  /** Whether the contents are only texts. */
  readonly hasOnlyTexts: boolean
}

/** Largest accepted maximum of output tokens, as for other dialects. */
const MAX_OUTPUT_TOKENS = 10_000_000

const CONFIG = 'generationConfig'

/** Fields of `generationConfig` on which the amount of a hold depends. */
const CONFIG_RULES: readonly ConfigRule[] = [
  ['maxOutputTokens', `an integer from 1 to ${MAX_OUTPUT_TOKENS}`, isInteger(1, MAX_OUTPUT_TOKENS)],
  ['candidateCount', 'an integer from 1 to 8', isInteger(1, 8)],
]

/**
 * The fields that the gateway needs to route, hold or charge. Checking all others is left to the provider.
 */
export const CHECKS: ReadonlyMap<string, Check> = spelled([
  ['contents', withSchema({ type: ['array', 'object'] }, checkContents)],
  ['tools', list],
  [CONFIG, withSchema({ type: 'object' }, checkConfig)],
  ['serviceTier', text],
])

const REQUIRED = ['contents'] as const

/** Builds the JSON Schema of requests that `readGeminiRequest` accepts. */
export function geminiRequestSchema(): JsonSchema {
  return requestSchema(REQUIRED, CHECKS, CONVERTED_CHECKS)
}

/**
 * Checks a request for `model`, which comes from its path, and returns what the gateway reads. Throws
 * `invalid_request` that names the field.
 */
export function readGeminiRequest(scan: ScannedObject, model: string): GeminiRequest {
  checkMembers(scan, REQUIRED, CHECKS)
  const config = asRecord(topValue(scan, CONFIG)) ?? {}
  const isPlain = hasOnlyTexts(scan)
  const offered = offeredTools(scan)
  const media = isPlain ? NO_MEDIA : mediaOf(scan, model)
  return {
    maxTokens: either(config, 'maxOutputTokens') as number | undefined,
    candidateCount: (either(config, 'candidateCount') as number | undefined) ?? 1,
    ...(offered && { providerTools: offered }),
    hasOnlyTexts: isPlain,
    promptBound: promptBound(scan) + media.excess,
    namesPrompt: topValue(scan, 'cachedContent') !== undefined,
    hasMedia: media.isAny || answersInMedia(either(config, 'responseModalities'), model),
  }
}

/**
 * Reports whether an answer may contain more than text, because it was requested or because the model does so
 * by itself.
 */
function answersInMedia(modalities: unknown, model: string): boolean {
  if (!Array.isArray(modalities)) return respondsInMedia(model)
  return modalities.some((modality) => !/^text$/i.test(String(modality)))
}

function checkContents(scan: ScannedObject, { key, node, count }: Member): void {
  if (scan.kindOf(node) === 'object') return
  if (scan.kindOf(node) === 'array' && count === 0) refuse(key, 'at least one content', 'an empty array')
  checkEachObject(scan, node, key, (content, path) => {
    const parts = nodeOf(scan, content, 'parts')
    if (parts !== undefined && scan.kindOf(parts) !== 'object')
      checkEachObject(scan, parts, `${path}.parts`, () => {})
  })
}

function checkConfig(scan: ScannedObject, { key, node }: Member): void {
  if (scan.kindOf(node) !== 'object') refuse(key, 'an object', kindName(scan, node))
  checkConfigRules(scan.value(key) as Fields, key, CONFIG_RULES)
}

/** Tools other than functions, by the members that request them. */
function offeredTools(scan: ScannedObject): ProviderTools | undefined {
  const list = topMember(scan, 'tools')?.node
  if (list === undefined) return undefined
  const tools = (scan.kindOf(list) === 'array' ? scan.elements(list) : [list])
    .filter((tool) => scan.kindOf(tool) === 'object')
    .flatMap((tool) => scan.entries(tool))
    .filter(({ node }) => scan.kindOf(node) !== 'null')
    .map(({ key }) => ({ type: camelCase(key) }))
    .filter(({ type }) => type !== 'functionDeclarations')
  return tools.length > 0 ? { tools } : undefined
}

function camelCase(name: string): string {
  return name.replaceAll(/_([a-z])/g, (_, letter: string) => letter.toUpperCase())
}
