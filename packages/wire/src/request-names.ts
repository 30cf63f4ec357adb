import { RESTRICTED_MEMBERS } from './upstream-settings.ts'
import { KnownMemberNames, type SpellingsOf } from './json/known-names.ts'

/** For each field whose value is an object: the known names of the members of that object. */
type NamesOfMembers = Readonly<Record<string, KnownMemberNames>>

/** Creates the set of an object's known names from a list separated by spaces. */
export function knownNames(fields: string, below?: NamesOfMembers): KnownMemberNames {
  return new KnownMemberNames(fields.split(' '), below)
}

/** Names of the members of a cache mark. */
export const CACHE_MARK_NAMES = knownNames('type ttl')

const THINKING = knownNames(
  'thinking_budget thinking_level include_thoughts thinkingBudget thinkingLevel includeThoughts',
)
const GOOGLE = knownNames('cached_content safety_settings', {
  thinking_config: THINKING,
  thinkingConfig: THINKING,
})

/** Names of the members of OpenRouter's `provider`. */
const PROVIDER = knownNames(
  'order only ignore allow_fallbacks require_parameters data_collection zdr quantizations sort max_price ' +
    'preferred_min_throughput preferred_max_latency enforce_distillable_text',
)

const REROUTING = {
  provider: PROVIDER,
  plugins: knownNames('id enabled engine max_results search_prompt model'),
  search_parameters: knownNames('mode max_search_results sources return_citations from_date to_date'),
} as const

/** Request fields that local model servers accept only inside `options`. */
const LOCAL_OPTIONS = ['num_predict', 'num_ctx'] as const

/**
 * Returns the known names of a request's top-level members: the given fields, and the fields that a channel
 * must allow in every protocol. Some upstreams treat members of `extra_body` and `options` as top-level
 * members, so all names are known there too.
 */
export function requestNames(
  fields: Iterable<string>,
  below: NamesOfMembers = {},
  spellingsOf?: SpellingsOf,
): KnownMemberNames {
  const all = [...fields, ...RESTRICTED_MEMBERS]
  const inner = { ...below, ...REROUTING }
  const merged = new KnownMemberNames([...all, ...LOCAL_OPTIONS], { ...inner, google: GOOGLE }, spellingsOf)
  return new KnownMemberNames(all, { ...inner, extra_body: merged, options: merged }, spellingsOf)
}
