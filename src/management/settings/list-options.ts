import { z } from 'zod'
import { versionOf } from '../../domain/object-version.ts'
import { GROUP_OPTIONS } from './group-options.ts'
import { MODEL_OPTIONS, modelSettingText } from './model-settings.ts'
import { modelRatios, RATIO_OPTIONS, ratioText } from './model-ratios.ts'
import type { AdministrationParts } from '../parts.ts'
import { SETTINGS } from '../../domain/options.ts'
import { settingText } from './option-body.ts'

/** An option, under its name in one-api and related gateways. */
export const optionSchema = z.object({
  key: z.string(),
  value: z.string(),
  /** The configuration file declares it, so it can be changed only there. */
  managed: z.boolean(),
  /** To be sent with `PUT`; changes with the value. */
  version: z.string(),
})

/** The live options, without secrets. */
export async function listOptions({
  store,
  settings,
  liveConfig,
}: Pick<AdministrationParts, 'store' | 'settings' | 'liveConfig'>): Promise<z.output<typeof optionSchema>[]> {
  const stored = await store.read('storedConfiguration')
  const { options, groups } = settings()
  const ratios = modelRatios(settings(), liveConfig, stored)
  const shown = [
    ...SETTINGS.map((setting) => ({
      key: setting.key,
      value: settingText(options, setting),
      managed: liveConfig.declared.options.has(setting.name),
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
