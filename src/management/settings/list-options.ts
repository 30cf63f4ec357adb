import { z } from 'zod'
import { type Decimal, decimalText } from '../../domain/decimal.ts'
import { versionOf } from '../../domain/object-version.ts'
import { type Options, type Setting, SETTINGS } from '../../domain/options.ts'
import type { StoredConfiguration } from '../../domain/settings.ts'
import type { AdministrationServices } from '../services.ts'
import {
  GROUP_OPTIONS,
  MODEL_OPTIONS,
  modelRatios,
  modelSettingText,
  RATIO_OPTIONS,
  ratioText,
  SECTION_OPTIONS,
  sectionOptionText,
} from './option-mappings.ts'

/** An option, under its name in One API and related gateways. */
export const optionSchema = z.object({
  key: z.string(),
  value: z.string(),
  /** True if gateway.yaml declares the option, so that it can be changed only there. */
  managed: z.boolean(),
  /**
   * The option's version, which changes with its value. A client sends it with `PUT`, so that it does not
   * overwrite a change by somebody else.
   */
  version: z.string(),
})

/** All options with their current values, without secrets. */
export async function listOptions(
  services: Pick<AdministrationServices, 'store' | 'settings' | 'liveConfig'>,
): Promise<z.output<typeof optionSchema>[]> {
  return optionsOf(services, await services.store.read('storedConfiguration'))
}

/** The options with the settings in effect, which are merged from those that are stored. */
export function optionsOf(
  { settings, liveConfig }: Pick<AdministrationServices, 'settings' | 'liveConfig'>,
  stored: StoredConfiguration,
): z.output<typeof optionSchema>[] {
  const { options, groups } = settings()
  const ratios = modelRatios(settings(), liveConfig, stored)
  const shown = [
    ...SETTINGS.map((setting) => ({
      key: setting.key,
      value: settingText(options, setting),
      managed: liveConfig.declared.options.has(setting.name),
    })),
    ...[...SECTION_OPTIONS.keys()].map((key) => ({
      key,
      value: sectionOptionText(options, key),
      managed: liveConfig.declared.options.has(key),
    })),
    ...[...GROUP_OPTIONS].map(([key, option]) => ({ key, value: option.text(groups), managed: false })),
    ...[...RATIO_OPTIONS].map(([key, ratio]) => ({
      key,
      value: ratioText(ratios, ratio),
      managed: false,
    })),
    ...[...MODEL_OPTIONS].map(([key, setting]) => ({
      key,
      value: modelSettingText(settings(), setting),
      managed: false,
    })),
  ]
  return shown.map((one) => ({ ...one, version: versionOf([one.key, one.value]) }))
}

/** The settings that gateway.yaml declares. */
export const declaredSchema = z.object({
  file: z.string().describe('the name of the file; empty if there is none'),
  items: z.array(
    z.object({
      path: z.string(),
      line: z.int(),
      value: z.unknown().describe('"set" for secrets and addresses of receivers'),
    }),
  ),
})

/** The settings that gateway.yaml declares at present. */
export function declaredSettingsObject({
  liveConfig,
}: Pick<AdministrationServices, 'liveConfig'>): z.output<typeof declaredSchema> {
  const { file, items } = liveConfig.declared.file
  return { file, items: [...items] }
}

export function settingText(options: Options, { name }: Pick<Setting, 'name'>): string {
  const value: string | number | boolean | Decimal = options[name]
  return typeof value === 'object' ? decimalText(value) : String(value)
}

/** The option with this key; undefined if there is none. */
export function settingOf(key: string): Setting | undefined {
  return SETTINGS.find((setting) => setting.key === key)
}
