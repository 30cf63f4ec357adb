/** Texts in English: the choice of a period. */
export const period = {
  label: 'Period',
  names: {
    hour: 'Last hour',
    today: 'Today',
    yesterday: 'Yesterday',
    '7d': 'Last 7 days',
    '30d': 'Last 30 days',
    '90d': 'Last 90 days',
    week: 'This week',
    month: 'This month',
    'last-month': 'Last month',
    custom: 'Chosen days',
    all: 'All that is kept',
  },
  from: 'From',
  to: 'To',
}
