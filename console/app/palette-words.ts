import type { SettingsSectionId } from '../pages/settings/settings-sections.ts'
import type { Page } from './pages.ts'

/** A page, an action or a section of the settings in the command palette. */
export type PaletteName =
  | Page['name']
  | 'account'
  | 'setup'
  | 'import'
  | 'createKey'
  | 'addChannel'
  | 'addUser'
  | 'language'
  | `settings#${SettingsSectionId}`

/**
 * The words by which the search of the command palette finds a place: those of what is done there, in both languages,
 * because many people type English terms in a Chinese console.
 */
export const PALETTE_WORDS: Readonly<Record<PaletteName, string>> = {
  overview: 'overview home 概览 首页',
  keys: 'keys tokens rotate disable limits budgets expiry 密钥 令牌 轮换 停用 限制 预算',
  playground: 'playground try chat compare models side by side 试用 对话 比较 对比',
  usage:
    'usage spend costs charts statistics export csv download errors failed calls 用量 统计 消费 导出 下载 错误 失败',
  logs: 'logs calls requests errors failed calls failures refused export csv download 日志 调用 错误 失败 拒绝 导出 下载',
  sessions: 'sessions conversations caches 会话 对话 缓存',
  batches: 'batches jobs lines results 批处理 结果',
  models: 'models prices 模型 价格',
  live: 'live running calls stop 实时调用 停止',
  whatIf: 'what if prices recost compare costs 假设 比较 对比',
  channels: 'channels upstreams providers rotate provider keys disable 渠道 上游 服务商 轮换 密钥 停用',
  routing: 'routing route simulate 路由 模拟',
  guards: 'guards redaction block secrets pii 防护规则 拦截 脱敏',
  tools: 'tools mcp servers toolsets approve 工具 批准',
  users: 'users accounts disable quota limits budgets invite 用户 停用 额度 限制 预算 邀请',
  groups: 'groups ratio members budgets limits 分组 倍率 成员 预算 限制',
  userKeys: 'keys of all users search by last characters 所有用户的密钥',
  audit: 'audit changes history 审计 更改',
  settings: 'settings options 设置 选项',
  account: 'account profile password access token sign-in sessions 账户 密码 访问令牌',
  setup: 'set up first steps 设置 开始',
  import: 'import migrate another gateway new-api litellm 导入 迁移',
  createKey: 'create new keys tokens 密钥 令牌 新建',
  addChannel: 'add channels upstreams providers 渠道 上游 新建',
  addUser: 'add users accounts 用户 新建',
  language: 'language 语言',
  'settings#money': 'currency usd cny quota units 货币 额度',
  'settings#routing': 'retries failures pass through 重试 失败',
  'settings#retention': 'keep days delete logs 保留 天数',
  'settings#groups': 'groups ratio 分组 倍率',
  'settings#fallback': 'fallback successor balance 备用 后继 均衡',
  'settings#answer-cache': 'answer cache 缓存',
  'settings#alerts': 'alerts webhooks notify mail slack receivers budgets 告警 警报 通知 邮件',
  'settings#rate-limits': 'rate limits requests 速率 限制 限流',
  'settings#sign-in': 'sign-in signin login oidc sso openid identity provider passwords 登录 单点登录 密码',
  'settings#file': 'gateway.yaml file options public_url smtp cors 文件 配置',
  'settings#telemetry': 'telemetry opentelemetry otlp traces metrics export 遥测 导出',
}
