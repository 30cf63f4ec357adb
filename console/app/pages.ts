import {
  type Icon,
  IconActivity,
  IconAdjustments,
  IconBox,
  IconCalculator,
  IconChartBar,
  IconHistory,
  IconHome,
  IconKey,
  IconListDetails,
  IconMessage,
  IconMessages,
  IconStack2,
  IconRoute,
  IconRouteAltLeft,
  IconShieldCheck,
  IconTool,
  IconUsers,
  IconUsersGroup,
  IconUserKey,
} from '@tabler/icons-react'
import { Role } from '../../src/domain/role.ts'
import type { Texts } from '../locales/use-texts.tsx'

/** A page in the navigation. */
export interface Page {
  readonly name:
    | 'overview'
    | 'keys'
    | 'playground'
    | 'usage'
    | 'logs'
    | 'sessions'
    | 'models'
    | 'live'
    | 'whatIf'
    | 'channels'
    | 'routing'
    | 'guards'
    | 'tools'
    | 'batches'
    | 'users'
    | 'groups'
    | 'userKeys'
    | 'audit'
    | 'settings'
  readonly path: string
  readonly icon: Icon
  /** The lowest role that may open the page. */
  readonly role: number
  /** The letter that opens the page if it is typed after `g`. */
  readonly letter: string
}

/** The pages in the navigation, in order. */
const PAGES: readonly Page[] = [
  { name: 'overview', path: '/', icon: IconHome, role: Role.user, letter: 'o' },
  { name: 'keys', path: '/keys', icon: IconKey, role: Role.user, letter: 'k' },
  {
    name: 'playground',
    path: '/playground',
    icon: IconMessage,
    role: Role.user,
    letter: 'p',
  },
  {
    name: 'usage',
    path: '/usage',
    icon: IconChartBar,
    role: Role.user,
    letter: 'u',
  },
  { name: 'logs', path: '/logs', icon: IconListDetails, role: Role.user, letter: 'l' },
  { name: 'sessions', path: '/sessions', icon: IconMessages, role: Role.user, letter: 'n' },
  { name: 'batches', path: '/batches', icon: IconStack2, role: Role.user, letter: 'b' },
  { name: 'models', path: '/models', icon: IconBox, role: Role.user, letter: 'm' },
  { name: 'live', path: '/live', icon: IconActivity, role: Role.admin, letter: 'w' },
  { name: 'whatIf', path: '/what-if', icon: IconCalculator, role: Role.admin, letter: 'i' },
  { name: 'channels', path: '/channels', icon: IconRoute, role: Role.admin, letter: 'c' },
  { name: 'routing', path: '/routing', icon: IconRouteAltLeft, role: Role.admin, letter: 'r' },
  { name: 'guards', path: '/guards', icon: IconShieldCheck, role: Role.admin, letter: 'a' },
  { name: 'tools', path: '/tools', icon: IconTool, role: Role.admin, letter: 't' },
  { name: 'users', path: '/users', icon: IconUsers, role: Role.admin, letter: 'e' },
  { name: 'groups', path: '/groups', icon: IconUsersGroup, role: Role.admin, letter: 'q' },
  { name: 'userKeys', path: '/user-keys', icon: IconUserKey, role: Role.admin, letter: 'y' },
  {
    name: 'audit',
    path: '/audit',
    icon: IconHistory,
    role: Role.admin,
    letter: 'd',
  },
  { name: 'settings', path: '/settings', icon: IconAdjustments, role: Role.root, letter: 's' },
]

/** The pages that a role may open. */
export function pagesForRole(role: number): readonly Page[] {
  return PAGES.filter((page) => role >= page.role)
}

/** The heading of a page, which is also its name in the navigation. */
export function pageTitle(name: Page['name'], texts: Texts): string {
  return texts[name].title
}
