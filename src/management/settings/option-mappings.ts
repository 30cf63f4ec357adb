import type { Budget } from '../../domain/budget.ts'
import { decimalText } from '../../domain/decimal.ts'
import { asObject, isJsonObject, type Json, type JsonObject } from '../../domain/json.ts'
import type { Options } from '../../domain/options.ts'
import { type RatioName, type Ratios, ratiosJson, ratiosOf, readRatios } from '../../domain/ratios.ts'
import { decimalTexts } from '../../domain/price.ts'
import { type Group, GROUP_SETTINGS } from '../../domain/records/group.ts'
import { retentionField } from '../../domain/records/duration.ts'
import { type Model, MODEL_SETTINGS } from '../../domain/records/model.ts'
import { fieldsWith, type FieldNamesWith } from '../../domain/records/record.ts'
import type { Settings, StoredConfiguration, StoredSection } from '../../domain/settings.ts'
import { durationText } from '../../domain/units.ts'
import { GatewayError } from '../../errors.ts'
import type { LiveSettings } from '../services.ts'
import { parseDecimalMapping, decimalsJson, parseJsonMapping, sameDecimal } from './decimal-map.ts'

type Groups = Settings['groups']

/** An option whose value is a JSON object with an entry for each group. */
interface GroupOption {
  text(groups: Groups): string
  changes(value: string, state: OptionState, key: string): StoredSettingChange[]
}

const { defaults } = GROUP_SETTINGS

/** Options that set something for each group, in the order in which responses list them. */
export const GROUP_OPTIONS: ReadonlyMap<string, GroupOption> = new Map<string, GroupOption>([
  ['GroupRatio', { text: ratiosText, changes: ratioChanges }],
  ['UserUsableGroups', { text: openGroupsText, changes: openGroupChanges }],
  ['GroupBudget', { text: budgetsText, changes: budgetChanges }],
  ['GroupGuards', { text: guardsText, changes: guardChanges }],
])

function ratiosText(groups: Groups): string {
  return decimalsJson(new Map([...groups.values()].map(({ name, ratio }) => [name, ratio])))
}

// A stored group for which the option's new value has no ratio is removed.
function ratioChanges(value: string, state: OptionState, key: string): StoredSettingChange[] {
  const ratios = parseDecimalMapping(key, value)
  const set = changesOf(ratios.keys(), state, key, (name, group) => {
    const ratio = ratios.get(name)!
    return group && sameDecimal(group.ratio, ratio)
      ? undefined
      : groupJson({ ...defaults, open: false, ...group, ratio })
  })
  const removed = state.stored.entries.filter(
    ({ section, name }) => section === 'groups' && !ratios.has(name),
  )
  return [
    ...set,
    ...removed.map(({ name }): StoredSettingChange => ({ section: 'groups', name, value: undefined })),
  ]
}

/** The open groups. The description of each is its name. */
function openGroupsText(groups: Groups): string {
  const open = [...groups.values()].filter((group) => group.open)
  return JSON.stringify(Object.fromEntries(open.map(({ name }) => [name, name])))
}

function openGroupChanges(value: string, state: OptionState, key: string): StoredSettingChange[] {
  const named = parseJsonMapping(key, value)
  const names = new Set([...state.settings.groups.keys(), ...named.keys()])
  return changesOf(names, state, key, (name, group) => {
    const open = named.has(name)
    return group?.open === open ? undefined : groupJson({ ...defaults, ...group, open })
  })
}

function budgetsText(groups: Groups): string {
  const budgets = [...groups.values()].filter(({ budget }) => budget)
  return JSON.stringify(Object.fromEntries(budgets.map(({ name, budget }) => [name, budgetJson(budget)])))
}

// A group that is missing from the option's new value loses its budget.
function budgetChanges(value: string, state: OptionState, key: string): StoredSettingChange[] {
  parseJsonMapping(key, value)
  const given = new Map(Object.entries(JSON.parse(value) as JsonObject))
  const names = new Set([...state.settings.groups.keys(), ...given.keys()])
  return changesOf(names, state, key, (name, group) => {
    const budget = given.get(name)
    if (isSameBudget(group?.budget, budget)) return undefined
    const others = groupJson({ ...defaults, open: false, ...group, budget: undefined })
    return { ...others, ...asObject(budget) }
  })
}

function guardsText(groups: Groups): string {
  const guarded = [...groups.values()].filter(({ guards }) => guards.length > 0)
  return JSON.stringify(Object.fromEntries(guarded.map(({ name, guards }) => [name, guards])))
}

// A group that is missing from the option's new value loses its guards.
function guardChanges(value: string, state: OptionState, key: string): StoredSettingChange[] {
  parseJsonMapping(key, value)
  const given = new Map(Object.entries(JSON.parse(value) as JsonObject))
  const names = new Set([...state.settings.groups.keys(), ...given.keys()])
  return changesOf(names, state, key, (name, group) => {
    const guards = given.get(name) ?? []
    if (JSON.stringify(group?.guards ?? []) === JSON.stringify(guards)) return undefined
    const { guards: _, ...others } = groupJson({ ...defaults, open: false, ...group })
    return { ...others, guards }
  })
}

/**
 * Computes changes of the definitions of these groups. `next` returns a group's new definition, or undefined
 * if it stays as it is.
 */
function changesOf(
  names: Iterable<string>,
  { settings, liveConfig }: OptionState,
  key: string,
  next: (name: string, group: Group | undefined) => JsonObject | undefined,
): StoredSettingChange[] {
  return [...names].flatMap((name): StoredSettingChange[] => {
    const value = next(name, settings.groups.get(name))
    if (!value) return []
    if (liveConfig.declared.groups.has(name)) throw managedByFileError(key, `groups.${name}`)
    return [{ section: 'groups', name, value }]
  })
}

/** A group in the form that it has in gateway.yaml. */
export function groupJson({ ratio, open, budget, guards }: Omit<Group, 'name'>): JsonObject {
  const named = guards.length > 0 && { guards }
  return { ratio: decimalText(ratio), open, ...named, ...budgetJson(budget) }
}

/** A budget in the form that it has in gateway.yaml; empty if there is none. */
function budgetJson(budget: Budget | undefined): JsonObject {
  return budget ? { budget: budget.amount, budget_period: budget.period } : {}
}

function isSameBudget(budget: Budget | undefined, given: Json | undefined): boolean {
  const now = budgetJson(budget)
  const { budget: amount, budget_period: period, ...others } = asObject(given)
  if (given !== undefined && (!isJsonObject(given) || Object.keys(others).length > 0)) return false
  return amount === now['budget'] && period === now['budget_period']
}

const { fields } = MODEL_SETTINGS

/** Name, in gateway.yaml, of a model's setting other than its price. */
export type ModelSetting = FieldNamesWith<typeof fields, 'edit'>

/** Options that set something for each model, with the name of the setting in gateway.yaml. */
export const MODEL_OPTIONS = new Map(
  Object.entries(fieldsWith(fields, 'edit')).map(([name, { as }]): [string, ModelSetting] => [
    as,
    name as ModelSetting,
  ]),
)

/** One setting of all models that have it, as a JSON object by model name. */
export function modelSettingText({ models }: Settings, setting: ModelSetting): string {
  const members = models.declared.toSorted().flatMap((name): [string, Json][] => {
    const model = models.get(name)
    const value = jsonOf(model, setting)
    return value === undefined || isSameSetting(model, setting, fields[setting].default)
      ? []
      : [[name, value]]
  })
  return JSON.stringify(Object.fromEntries(members))
}

/**
 * Checks the value that an option states for a model. Throws `invalid_request` if it is neither a text nor a
 * list of texts.
 */
export function parseModelSetting(key: string, name: string, value: unknown): string | readonly string[] {
  if (typeof value === 'string') return value
  if (Array.isArray(value) && value.every((one) => typeof one === 'string')) return value
  throw new GatewayError(
    'invalid_request',
    `${key}: expected a text or a list of texts for ${JSON.stringify(name)}`,
  )
}

/** Whether a model's setting already has this value. */
export function isSameSetting(model: Model, setting: ModelSetting, json: Json | undefined): boolean {
  return JSON.stringify(jsonOf(model, setting)) === JSON.stringify(json)
}

/** A model's setting in JSON; undefined if the model does not have it. */
function jsonOf(model: Model, setting: ModelSetting): Json | undefined {
  const value = model[setting]
  const type = fields[setting].type as { toJson(value: unknown): Json }
  return value === undefined ? undefined : type.toJson(value)
}

/**
 * Options whose value is an object with several members. Each function returns the value in the form of
 * gateway.yaml; undefined if the option is not set.
 */
export const SECTION_OPTIONS = new Map<string, (options: Options) => JsonObject | undefined>([
  [
    'cache',
    ({ cache }) =>
      cache && {
        ttl: retentionField.toJson(cache.ttl),
        max_ttl: durationText(cache.max_ttl),
        scope: cache.scope,
        most: cache.most,
        price: decimalText(cache.price),
      },
  ],
  [
    'idempotency',
    ({ idempotency: { keep, most_answer } }) => ({ keep: retentionField.toJson(keep), most_answer }),
  ],
])

/**
 * The value, as JSON text, of an option that has several members (`SECTION_OPTIONS`); empty if it is not set.
 */
export function sectionOptionText(options: Options, key: string): string {
  const value = SECTION_OPTIONS.get(key)?.(options)
  return value ? JSON.stringify(value) : ''
}

/**
 * The change that sets an option with several members (`SECTION_OPTIONS`); an empty text removes it.
 * gateway.yaml declares all members of such an option or none.
 */
export function changesOfSectionOption(
  key: string,
  text: string,
  { settings, liveConfig }: OptionState,
): StoredSettingChange[] {
  if (text !== '') parseJsonMapping(key, text)
  if (liveConfig.declared.options.has(key)) {
    if (sectionOptionText(settings.options, key) === text) return []
    throw managedByFileError(key, `options.${key}`)
  }
  const value = text === '' ? undefined : (JSON.parse(text) as JsonObject)
  return [{ section: 'options', name: key, value }]
}

/** Options that set a price ratio for each model, with the name of the ratio. */
export const RATIO_OPTIONS = new Map<string, RatioName>([
  ['ModelRatio', 'model'],
  ['CompletionRatio', 'completion'],
  ['CacheRatio', 'cache'],
  ['CreateCacheRatio', 'createCache'],
  ['ImageRatio', 'image'],
  ['ImageCompletionRatio', 'imageCompletion'],
  ['AudioRatio', 'audio'],
  ['AudioCompletionRatio', 'audioCompletion'],
  ['CharacterPrice', 'characters'],
  ['SecondPrice', 'second'],
  ['SearchUnitPrice', 'search_unit'],
  ['ImagePrice', 'images'],
  ['ModelPrice', 'price'],
])

/**
 * The price ratios of all models that are served or declared, or that have stored ratios: the stored ratios,
 * otherwise those of the current price.
 */
export function modelRatios(
  settings: Settings,
  { declared }: LiveSettings,
  { entries }: StoredConfiguration,
): ReadonlyMap<string, Ratios> {
  const set = new Map(
    entries.flatMap(({ section, name, value }): [string, Ratios][] =>
      section === 'ratios' && !declared.models.has(name) ? [[name, readRatios(value)]] : [],
    ),
  )
  const served = settings.channels.flatMap(({ models }) => models)
  const names = new Set([...settings.models.declared, ...set.keys(), ...served])
  return new Map(
    [...names].toSorted().map((name): [string, Ratios] => {
      const price = settings.models.get(name).price
      return [name, { ...(price && ratiosOf(price)), ...set.get(name) }]
    }),
  )
}

/**
 * One kind of ratio of all models, as a JSON object with exact decimals. Prices of images are objects by size
 * and quality.
 */
export function ratioText(all: ReadonlyMap<string, Ratios>, ratio: RatioName): string {
  const members = [...all].flatMap(([name, ratios]): string[] => {
    const text = valueText(ratios, ratio)
    return text === undefined ? [] : [`${JSON.stringify(name)}:${text}`]
  })
  return `{${members.join(',')}}`
}

function valueText(ratios: Ratios, ratio: RatioName): string | undefined {
  if (ratio !== 'images') return ratios[ratio] && decimalText(ratios[ratio])
  const forms = Object.entries(ratios.images ? decimalTexts(ratios.images) : {})
  if (forms.length === 0) return undefined
  const [[form, price] = ['', '']] = forms
  if (forms.length === 1 && form === 'default') return price
  return `{${forms.map(([name, text]) => `${JSON.stringify(name)}:${text}`).join(',')}}`
}

/** Whether one kind of ratio is equal in `a` and `b`. */
export function isSameRatio(ratio: RatioName, a: Ratios | undefined, b: Ratios): boolean {
  const text = (ratios: Ratios | undefined): string | undefined =>
    JSON.stringify(ratiosJson({ [ratio]: ratios?.[ratio] }))
  return text(a) === text(b)
}

/** A change of a stored setting; with an undefined value the setting is removed. */
export interface StoredSettingChange {
  readonly section: StoredSection
  readonly name: string
  readonly value: Json | undefined
}

/** The present settings, from which changes are computed. */
export interface OptionState {
  readonly settings: Settings
  readonly liveConfig: LiveSettings
  readonly stored: StoredConfiguration
}

/** The error for a change of something that gateway.yaml declares at this path. */
export function managedByFileError(key: string, path: string): GatewayError {
  return new GatewayError(
    'managed_by_file',
    `${key}: ${path} is set in gateway.yaml, and can be changed there alone`,
  )
}
