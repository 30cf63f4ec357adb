import { expect, test } from 'vitest'
import { changedGroupOptions, groupsInOptions } from './groups.ts'

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
  expect(groupsInOptions(OPTIONS)).toEqual([
    { name: 'default', ratio: '1', isOpen: true },
    { name: 'a "b"', ratio: '0.8000000000000000001', isOpen: false },
  ])
})

test('the settings page sends no option of groups if no named group was changed', () => {
  const groups = groupsInOptions(OPTIONS)
  expect(changedGroupOptions(groups, groups)).toEqual([])
  expect(changedGroupOptions([...groups, { name: '', ratio: '1', isOpen: true }], groups)).toEqual([])
})

test('adding a group that users may choose saves first the ratios of groups, then the list of groups to choose from', () => {
  const groups = groupsInOptions(OPTIONS)
  expect(changedGroupOptions([...groups, { name: 'vip', ratio: '0.5', isOpen: true }], groups)).toEqual([
    ['GroupRatio', '{"default":1,"a \\"b\\"":0.8000000000000000001,"vip":0.5}'],
    ['UserUsableGroups', '{"default":"default","vip":"vip"}'],
  ])
})
