import type { z } from 'zod'
import { decimalText } from '../../domain/decimal.ts'
import { type RatioName, type Ratios, ratiosJson, ratiosOf, readRatios } from '../../domain/ratios.ts'
import { type Group, GROUP_SETTINGS } from '../../domain/records/group.ts'
import type { Settings } from '../../domain/settings.ts'
import type { Json, JsonObject } from '../../domain/json.ts'
import type { StoredConfiguration, StoredEntry, StoredSection } from '../../domain/stored-configuration.ts'
import { GatewayError } from '../../errors.ts'
import { requireVersion } from '../../domain/object-version.ts'
import { withPresent } from '../expected-version.ts'
import { decimalsIn, imagePricesIn, mappingIn, sameDecimal } from './decimal-map.ts'
import { groupBudgetJson, isSameBudget } from './group-budgets.ts'
import { listOptions } from './list-options.ts'
import { isSameRatio, modelRatios, RATIO_OPTIONS } from './model-ratios.ts'
import type { AdministrationParts } from '../parts.ts'
import { asObject, isSameSetting, MODEL_OPTIONS, type ModelSetting, settingJson } from './model-settings.ts'
import { type optionBody, settingOf, settingText } from './option-body.ts'
import type { Setting } from '../../domain/options.ts'
import type { LiveSettings } from './live-settings.ts'

const { defaults } = GROUP_SETTINGS

/** A change of a stored entry; an undefined value removes the entry. */
type Change = { readonly section: StoredSection; readonly name: string; readonly value: Json | undefined }

/** The state from which changes are computed. */
interface OptionState {
  readonly settings: Settings
  readonly liveConfig: LiveSettings
  readonly stored: StoredConfiguration
}

/**
 * Sets one option. Throws `invalid_request` if the schema of gateway.yaml refuses its value, and
 * `managed_by_file` if the file declares a different one. Resolves when it is live.
 */
export async function setOption(
  parts: AdministrationParts,
  { key, value, version }: z.output<typeof optionBody>,
): Promise<void> {
  const { store, settings, liveConfig } = parts
  const reader = readerOf(key)
  const present = async () => (await listOptions(parts)).find((option) => option.key === key)
  const isBased = version !== undefined && version !== null
  let changes: readonly Change[] = []
  let expected: readonly Change[] = []
  await withPresent(async () => {
    if (isBased) {
      await liveConfig.reread()
      requireVersion(version, (await present())?.version ?? '')
    }
    const basis = settings()
    await liveConfig.change(
      (stored) => {
        // A change made in between counts as a different version.
        if (isBased && settings() !== basis) requireVersion(version, '')
        changes = reader(value, { settings: settings(), liveConfig, stored })
        if (isBased) expected = changes.map((change) => ({ ...change, value: storedValue(stored, change) }))
        return { ...stored, entries: changed(stored.entries, changes) }
      },
      () => store.write('setEntries', { changes, expected }),
    )
  }, present)
}

function storedValue({ entries }: StoredConfiguration, { section, name }: Change): Json | undefined {
  return entries.find((entry) => entry.section === section && entry.name === name)?.value
}

function readerOf(key: string): (value: string, state: OptionState) => Change[] {
  const scalar = settingOf(key)
  if (scalar) return (value, state) => scalarChange(scalar, value.trim(), state)
  if (key === 'GroupRatio') return groupRatioChanges
  if (key === 'UserUsableGroups') return openGroupChanges
  if (key === 'GroupBudget') return groupBudgetChanges
  const ratio = RATIO_OPTIONS.get(key)
  if (ratio) {
    return (value, state) =>
      ratioChanges(key, ratio, ratio === 'images' ? imagePricesIn(key, value) : decimalsIn(key, value), state)
  }
  return (value, state) => modelChanges(key, MODEL_OPTIONS.get(key)!, value, state)
}

function scalarChange(setting: Setting, value: string, { settings, liveConfig }: OptionState): Change[] {
  const { key, name } = setting
  if (liveConfig.declared.options.has(name)) {
    if (settingText(settings.options, setting) === value) return []
    throw managed(key, `options.${name}`)
  }
  return [{ section: 'options', name, value }]
}

function groupRatioChanges(value: string, { settings, liveConfig, stored }: OptionState): Change[] {
  const ratios = decimalsIn('GroupRatio', value)
  const set = [...ratios].flatMap(([name, ratio]): Change[] => {
    const group = settings.groups.get(name)
    if (group && sameDecimal(group.ratio, ratio)) return []
    if (liveConfig.declared.groups.has(name)) throw managed('GroupRatio', `groups.${name}`)
    return [groupEntry(name, { open: false, ...group, ratio })]
  })
  const removed = stored.entries.filter(({ section, name }) => section === 'groups' && !ratios.has(name))
  return [...set, ...removed.map(({ name }): Change => ({ section: 'groups', name, value: undefined }))]
}

function openGroupChanges(value: string, { settings, liveConfig }: OptionState): Change[] {
  const open = mappingIn('UserUsableGroups', value)
  const names = new Set([...settings.groups.keys(), ...open.keys()])
  return [...names].flatMap((name): Change[] => {
    const group = settings.groups.get(name)
    if (group && group.open === open.has(name)) return []
    if (liveConfig.declared.groups.has(name)) throw managed('UserUsableGroups', `groups.${name}`)
    return [groupEntry(name, { ...defaults, ...group, open: open.has(name) })]
  })
}

// A group that the value does not name loses its budget.
function groupBudgetChanges(value: string, { settings, liveConfig }: OptionState): Change[] {
  mappingIn('GroupBudget', value)
  const given = new Map(Object.entries(JSON.parse(value) as JsonObject))
  const names = new Set([...settings.groups.keys(), ...given.keys()])
  return [...names].flatMap((name): Change[] => {
    const group = settings.groups.get(name)
    const budget = given.get(name)
    if (isSameBudget(group?.budget, budget)) return []
    if (liveConfig.declared.groups.has(name)) throw managed('GroupBudget', `groups.${name}`)
    const value = groupJson({ ...defaults, open: false, ...group, budget: undefined })
    return [{ section: 'groups', name, value: { ...value, ...asObject(budget ?? {}) } }]
  })
}

function groupEntry(name: string, group: Omit<Group, 'name'>): Change {
  return { section: 'groups', name, value: groupJson(group) }
}

function groupJson({ ratio, open, budget }: Omit<Group, 'name'>): JsonObject {
  return { ratio: decimalText(ratio), open, ...groupBudgetJson(budget) }
}

// Stored ratios that are absent from the value are removed; the file and the built-in table still apply to
// other models.
function ratioChanges(
  key: string,
  ratio: RatioName,
  given: ReadonlyMap<string, Ratios[RatioName]>,
  { settings, liveConfig, stored }: OptionState,
): Change[] {
  const now = modelRatios(settings, liveConfig, stored)
  const entries = new Map(
    stored.entries.flatMap(({ section, name, value }) =>
      section === 'ratios' ? [[name, value] as const] : [],
    ),
  )
  const names = new Set([...entries.keys(), ...given.keys()])
  return [...names].flatMap((name): Change[] => {
    const value = given.get(name)
    const entry = entries.get(name) ?? null
    const { price } = settings.models.get(name)
    // An exact price is converted to ratios as soon as one of them is set.
    const before = price && 'exact' in asObject(entry) ? ratiosOf(price) : readRatios(entry)
    if (value && isSameRatio(ratio, now.get(name), { [ratio]: value })) return []
    if (value && liveConfig.declared.models.has(name)) throw managed(key, `models.${name}`)
    if (!value && !before[ratio]) return []
    return [{ section: 'ratios', name, value: ratiosJson({ ...before, [ratio]: value }) }]
  })
}

// A model that the value does not name loses the setting, unless the file declares the model.
function modelChanges(
  key: string,
  setting: ModelSetting,
  value: string,
  { settings, liveConfig, stored }: OptionState,
): Change[] {
  const given = mappingIn(key, value)
  const entries = new Map(
    stored.entries.flatMap(({ section, name, value }) =>
      section === 'models' ? [[name, asObject(value)] as const] : [],
    ),
  )
  const names = new Set([...given.keys(), ...entries.keys()])
  return [...names].flatMap((name): Change[] => {
    const wanted = given.get(name)
    const json = wanted === undefined ? undefined : settingJson(key, name, wanted)
    if (json !== undefined && isSameSetting(settings.models.get(name), setting, json)) return []
    if (json !== undefined && liveConfig.declared.models.has(name)) throw managed(key, `models.${name}`)
    const { [setting]: before, ...others } = entries.get(name) ?? {}
    if (json === undefined && before === undefined) return []
    const next = json === undefined ? others : { ...others, [setting]: json }
    return [{ section: 'models', name, value: Object.keys(next).length > 0 ? next : undefined }]
  })
}

function changed(entries: readonly StoredEntry[], changes: readonly Change[]): StoredEntry[] {
  const identity = ({ section, name }: Pick<StoredEntry, 'section' | 'name'>): string => `${section} ${name}`
  const touched = new Set(changes.map(identity))
  const set = changes.flatMap(({ value, ...one }) => (value === undefined ? [] : [{ ...one, value }]))
  return [...entries.filter((one) => !touched.has(identity(one))), ...set]
}

function managed(key: string, path: string): GatewayError {
  return new GatewayError(
    'managed_by_file',
    `${key}: ${path} is set in gateway.yaml, and can be changed there alone`,
  )
}
