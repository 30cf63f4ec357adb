import type { Texts } from '../en.ts'

/** Texts in simplified Chinese: the page Groups. */
export const groups: Texts['groups'] = {
  title: '分组',
  hint: '每个用户属于一个分组。分组决定价格、渠道和防护规则，所有成员共用它的预算。',
  add: '添加分组',
  create: '创建分组',
  name: '名称',
  members: '成员',
  noMembers: '此分组没有用户。',
  more: (count) => `以及另外 ${count} 个`,
  ratio: '倍率',
  ratioHint: '调用的价格会乘以它。',
  open: '可用密钥',
  anyone: '所有用户',
  membersAlone: '成员',
  openLabel: '任何用户的密钥都可以使用此分组',
  models: '模型',
  guards: '防护规则',
  fromFile: '在 gateway.yaml 中声明，只能在那里更改。',
  saved: (name) => `分组“${name}”已保存`,
  remove: '删除分组',
  deleteText: (name) => `要删除分组“${name}”及其倍率、预算和防护规则吗？`,
  deleted: (name) => `分组“${name}”已删除`,
}
