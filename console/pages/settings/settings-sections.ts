import { SETTINGS_SECTIONS, type SettingsSection } from '../../../src/domain/options.ts'
import type { Texts } from '../../locales/use-texts.tsx'

/** The id of a section of the page Settings, which its address ends with. */
export type SettingsSectionId =
  | SettingsSection
  | 'groups'
  | 'fallback'
  | 'answer-cache'
  | 'alerts'
  | 'rate-limits'
  | 'sign-in'
  | 'file'
  | 'telemetry'

/** The sections of the page in their order, with their ids. */
export function settingsSections(
  settings: Texts['settings'],
): readonly (readonly [id: SettingsSectionId, title: string])[] {
  return [
    ...SETTINGS_SECTIONS.map((region) => [region, settings[region]] as const),
    ['groups', settings.groups],
    ['fallback', settings.fallback],
    ['answer-cache', settings.answerCache.title],
    ['alerts', settings.alerts.title],
    ['rate-limits', settings.rateLimits],
    ['sign-in', settings.signIn],
    ['file', settings.fileOptions],
    ['telemetry', settings.telemetry.title],
  ]
}
