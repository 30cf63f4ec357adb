import type { Texts } from '../en.ts'

/** Texts in simplified Chinese: the page Import. */
export const imports: Texts['imports'] = {
  title: '导入',
  link: '从其他网关导入',
  hint: 'one-api 或 new-api 的 SQLite 文件，或 LiteLLM 的 config.yaml，最大 512 MB。读取不会写入任何内容。用户、密钥、渠道、分组和价格都会迁移：密钥继续可用，此处已有的内容保持不变。应用之前请先停止原网关，以免它继续计费。',
  file: '数据库或配置文件',
  choose: '选择文件',
  none: '未选择文件',
  read: '读取文件',
  apply: '应用',
  report: '报告',
  summary: '汇总',
  kind: '类型',
  name: '名称',
  result: '结果',
  remark: '说明',
  readFrom: (source) => `已读取${source}。尚未写入任何内容。`,
  applied: (failed, text) =>
    failed === 0 ? '已导入。原有密钥现在可用。' : `已导入，但有 ${text} 个用户未能写入：原因见报告。`,
  toChannels: '查看渠道',
  passwords: (_, text) => `${text} 个密码无法迁移：请在“用户”页面设置新密码。`,
  leftOff: (_, text) => `另有 ${text} 行；上方汇总包含全部行。`,
  sources: {
    'one-api': ' one-api 数据库',
    'new-api': ' new-api 数据库',
    litellm: ' LiteLLM 配置',
  },
  kinds: {
    user: '用户',
    token: '密钥',
    channel: '渠道',
    group: '分组',
    price: '价格',
    option: '选项',
    login: '登录方式',
    table: '数据表',
  },
  fates: { carried: '迁移', changed: '有改动', there: '已存在', left: '不迁移' },
}
