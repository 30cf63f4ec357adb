import type { Texts } from '../en.ts'

/** Texts in simplified Chinese: the choice of a period. */
export const period: Texts['period'] = {
  label: '时间范围',
  names: {
    hour: '最近一小时',
    today: '今天',
    yesterday: '昨天',
    '7d': '最近 7 天',
    '30d': '最近 30 天',
    '90d': '最近 90 天',
    week: '本周',
    month: '本月',
    'last-month': '上月',
    custom: '指定日期',
    all: '全部保留的记录',
  },
  from: '从',
  to: '到',
}
