import type { Texts } from '../en.ts'

/** Texts in simplified Chinese: settings. */
export const settings: Texts['settings'] = {
  title: '设置',
  money: '账户与金额',
  routing: '路由',
  groups: '分组',
  retention: '保留',
  save: '保存设置',
  fromFile: '来自 gateway.yaml',
  unsaved: (count) => `${count} 项更改未保存`,
  options: {
    'general_setting.quota_display_type': ['金额显示为', '控制台和账单接口如何显示额度。'],
    QuotaPerUnit: ['一美元的额度单位数', '更改时不会换算已存的额度。'],
    USDExchangeRate: ['美元兑人民币', '用于以人民币显示的金额。'],
    DisplayTokenStatEnabled: ['账单接口按密钥统计', '否则按整个账户统计。'],
    'token_setting.max_user_tokens': ['每个用户的密钥数', '一个用户最多可拥有的数量。'],
    unpriced_models: ['没有价格的模型', '拒绝其调用，或免费提供。'],
    RetryTimes: ['失败后再尝试的渠道数', '在答复的首个字节之前。'],
    hold_tokens: ['预留的输出 token 数', '用于没有指定上限的请求。'],
    'global.pass_through_request_enabled': ['透传所有字段', '包括平时会被移除的字段。'],
    usage_log_days: ['单次调用的保留天数', '合计会一直保留。'],
  },
  values: { refuse: '拒绝', free: '免费', USD: '美元', CNY: '人民币', TOKENS: '额度单位' },
  groupName: '分组',
  groupRatio: '倍率',
  groupOpen: '对所有用户开放',
  groupHint: '调用的费用为其价格乘以分组的倍率。',
  addGroup: '添加分组',
  removeGroup: (name) => `移除分组 ${name}`,
  notANumber: '请输入数字。',
}
