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

test('groups are read with every digit of their ratio', () => {
  expect(groupsIn(OPTIONS)).toEqual([
    { name: 'default', ratio: '1', isOpen: true },
    { name: 'a "b"', ratio: '0.8000000000000000001', isOpen: false },
  ])
})

test('an unchanged option is not set', () => {
  const groups = groupsIn(OPTIONS)
  expect(changedGroups(groups, groups)).toEqual([])
  expect(changedGroups([...groups, { name: '', ratio: '1', isOpen: true }], groups)).toEqual([])
})

test('a new open group sets both options, its ratio first', () => {
  const groups = groupsIn(OPTIONS)
  expect(changedGroups([...groups, { name: 'vip', ratio: '0.5', isOpen: true }], groups)).toEqual([
    ['GroupRatio', '{"default":1,"a \\"b\\"":0.8000000000000000001,"vip":0.5}'],
    ['UserUsableGroups', '{"default":"default","vip":"vip"}'],
  ])
})
