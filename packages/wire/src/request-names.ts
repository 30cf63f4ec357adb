import { RESTRICTED_MEMBERS } from './upstream-settings.ts'
import { KnownMemberNames, type NamesBelow, type SpellingsOf } from './json/known-names.ts'
import { PLACE, type Shape } from './shape/define-shape.ts'
import type { Members } from './shape/vocabulary.ts'

/** For each field whose value is an object: the known names of the members of that object. */
type NamesOfMembers = Readonly<Record<string, NamesBelow>>

/** Creates the set of an object's known names from a list separated by spaces. */
export function knownNames(fields: string, below?: NamesOfMembers): NamesBelow {
  const names = new KnownMemberNames(fields.split(' '), below)
  return () => names
}

/** Tables and kinds with names that users choose. Their members are not checked. */
const CHOSEN: ReadonlySet<string | undefined> = new Set(['Schema', 'result'])

/** Names that are known in addition to those of a shape. */
interface OtherNames {
  /** Names of members of a table, separated by spaces. */
  readonly members?: Readonly<Record<string, string>>
  /** Names inside the value of a member: `Part.functionResponse`, `Request.thinking`. */
  readonly below?: NamesOfMembers
  readonly spellingsOf?: SpellingsOf
}

/** The known names in the objects of a table, and in the objects inside them. */
class NamesOfTables {
  readonly #shape: Shape
  readonly #others: OtherNames
  readonly #made = new Map<string, KnownMemberNames>()

  constructor(shape: Shape, others: OtherNames) {
    this.#shape = shape
    this.#others = others
  }

  fields(table: string): readonly string[] {
    return [...Object.keys(this.#membersOf(table)), ...(this.#others.members?.[table]?.split(' ') ?? [])]
  }

  below(table: string): NamesOfMembers {
    const all: Record<string, NamesBelow> = {}
    for (const [member, place] of Object.entries(this.#membersOf(table))) {
      const [, isMap, kind, inner] = PLACE.exec(place) ?? []
      if (inner !== undefined && !isMap && !CHOSEN.has(kind) && !CHOSEN.has(inner))
        all[member] = () => this.#namesOf(inner)
    }
    for (const [path, names] of Object.entries(this.#others.below ?? {})) {
      const [holder, member = ''] = path.split('.')
      if (holder === table) all[member] = names
    }
    return all
  }

  #namesOf(table: string): KnownMemberNames {
    const made = this.#made.get(table)
    if (made) return made
    const names = new KnownMemberNames(this.fields(table), this.below(table), this.#others.spellingsOf)
    this.#made.set(table, names)
    return names
  }

  /** The members of a table and of all its variants. */
  #membersOf(table: string): Members<string> {
    const all = Object.entries(this.#shape.tables)
    const variants = all.filter(([name]) => name.split(/[:?]/)[0] === table)
    return Object.assign({}, ...variants.map(([, members]) => members), this.#shape.tables[table])
  }
}

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
 * Returns the known names of a request: those that its shape describes, those of the given fields, and of the fields that a
 * channel must allow in every protocol. Some upstreams treat members of `extra_body` and `options` as top-level members, so
 * all names are known there too.
 */
export function requestNames(
  fields: Iterable<string>,
  shape: Shape,
  others: OtherNames = {},
): KnownMemberNames {
  const tables = new NamesOfTables(shape, others)
  const all = [...fields, ...tables.fields('Request'), ...RESTRICTED_MEMBERS]
  const inner = { ...tables.below('Request'), ...REROUTING }
  const merged = new KnownMemberNames(
    [...all, ...LOCAL_OPTIONS],
    { ...inner, google: GOOGLE },
    others.spellingsOf,
  )
  return new KnownMemberNames(
    all,
    { ...inner, extra_body: () => merged, options: () => merged },
    others.spellingsOf,
  )
}
