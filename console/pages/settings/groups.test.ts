import { expect, test } from 'vitest'
import { changedGroups, groupsIn } from './groups.ts'

const OPTIONS = [
  {
    key: 'GroupRatio',
    value: '{"default":1,"a \\"b\\"":0.8000000000000000001}',
    managed: false,
    version: 'v1',
  },
  { key: 'UserUsableGroups', value: '{"default":"default"}', managed: false, version: 'v1' },
]

test('the settings page reads the ratios of groups with all digits', () => {
  expect(groupsIn(OPTIONS)).toEqual([
    { name: 'default', ratio: '1', isOpen: true },
    { name: 'a "b"', ratio: '0.8000000000000000001', isOpen: false },
  ])
})

test('the settings page does not send an unchanged option', () => {
  const groups = groupsIn(OPTIONS)
  expect(changedGroups(groups, groups)).toEqual([])
  expect(changedGroups([...groups, { name: '', ratio: '1', isOpen: true }], groups)).toEqual([])
})

test('adding an open group sends the option of ratios, then that of open groups', () => {
  const groups = groupsIn(OPTIONS)
  expect(changedGroups([...groups, { name: 'vip', ratio: '0.5', isOpen: true }], groups)).toEqual([
    ['GroupRatio', '{"default":1,"a \\"b\\"":0.8000000000000000001,"vip":0.5}'],
    ['UserUsableGroups', '{"default":"default","vip":"vip"}'],
  ])
})
