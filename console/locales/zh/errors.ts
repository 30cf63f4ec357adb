import type { Texts } from '../en.ts'

/** Texts in simplified Chinese: error messages. */
export const errors: Texts['errors'] = {
  failed: '无法加载此内容。',
  notDone: '操作未完成，没有任何更改。',
  noAnswer: '没有收到答复。请检查是否已保存。',
  administratorsOnly: '此页面仅供管理员使用。',
  rootOnly: '此页面仅供超级管理员使用。',
  connectionLost: '连接已断开，正在重试…',
  limited: (seconds) => `请求过多，${seconds} 秒后重试。`,
  byCode: {
    insufficient_quota: '剩余额度不足。',
    quota_held: '进行中的调用占用了剩余额度，请在其结束后重试。',
    changed_meanwhile: '已有人修改了它。请关闭后重新查看。',
    in_use: '它仍在别处使用。',
    managed_by_file: '此项在 gateway.yaml 中设置，只能在那里更改。',
    role_too_low: '你的角色无权执行此操作。',
    rate_limited: '请求过多，请稍后重试。',
    overloaded: '网关繁忙，请稍后重试。',
    storage_unavailable: '网关无法写入数据库，磁盘可能已满。未作任何更改。',
    not_found: '它已不存在。',
  },
}
