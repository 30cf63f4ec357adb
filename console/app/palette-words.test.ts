import { expect, test } from 'vitest'
import { PALETTE_WORDS, type PaletteName } from './palette-words.ts'

test.each([
  ['alert', 'settings#alerts', '告警'],
  ['alerts', 'settings#alerts', '告警'],
  ['webhook', 'settings#alerts', '通知'],
  ['oidc', 'settings#sign-in', '单点登录'],
  ['sso', 'settings#sign-in', '单点登录'],
  ['sign-in', 'settings#sign-in', '登录'],
  ['rotate', 'channels', '轮换'],
  ['rotate', 'keys', '轮换'],
  ['export', 'usage', '导出'],
  ['export', 'logs', '导出'],
  ['csv', 'usage', '导出'],
  ['csv', 'logs', '下载'],
  ['error', 'logs', '错误'],
  ['failed', 'logs', '失败'],
  ['compare', 'playground', '比较'],
  ['import', 'import', '导入'],
  ['disable', 'channels', '停用'],
  ['disable', 'users', '停用'],
  ['limit', 'keys', '限制'],
  ['limit', 'settings#rate-limits', '限流'],
  ['budget', 'keys', '预算'],
  ['budget', 'users', '预算'],
  ['budget', 'groups', '预算'],
] as const satisfies readonly (readonly [string, PaletteName, string])[])(
  'the search of the console for "%s" finds %s, and so does %s',
  (english, place, chinese) => {
    // A word that begins with the text comes before objects that contain it.
    const words = PALETTE_WORDS[place].split(' ')
    for (const text of [english, chinese])
      expect(words.filter((word) => word.startsWith(text))).not.toEqual([])
  },
)
